"""Which lifts wait for their turn in vain."""

import asyncio

import pytest

from controller.flight import PATIENCE_S, Flight, key_of
from controller.open_questions import OpenQuestions
from controller.untried_lifts import UntriedLifts
from controller.write_order import WriteOrder
from core.affinity import NodeRequirement
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.unit.controller.lift_world import pod

pytestmark = pytest.mark.looptime


async def test_where_lifts_are_stored_those_alone_wait_in_vain_that_wait_for_an_answer() -> None:
    pods = [
        pod(name, namespace=namespace).view() for name, namespace in (("a", "ml"), ("b", "ml"), ("c", "x"))
    ]
    flights = {key_of(each): Flight(Lift(each, "q", {}, {}, NodeRequirement(), each)) for each in pods}
    questions = OpenQuestions()
    untried = UntriedLifts(flights, WriteOrder(), questions, Ledger(Settings()))
    assert finish(untried.in_vain()) == [], "they have just been decided"
    await asyncio.sleep(PATIENCE_S)
    untried.stored("ml")
    assert [key for key, _ in finish(untried.in_vain())] == [key_of(pods[2])]
    assert not questions.join("x/g", key_of(pods[2]))
    assert not questions.join("ml/g", key_of(pods[0]))
    assert [key for key, _ in finish(untried.in_vain())] == [key_of(pods[0]), key_of(pods[2])]
    assert questions.end("ml/g") == []
    await asyncio.sleep(PATIENCE_S)
    assert len(finish(untried.in_vain())) == 3, "none was stored for long"
