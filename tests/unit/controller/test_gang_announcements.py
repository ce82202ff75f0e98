"""What is said on a PodGroup whose members got different cards."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from controller.announcements import Announcements
from core import reasons
from core.affinity import NodeRequirement
from core.catalogue.notes import event_note
from core.plan.decision import Lift, Spread
from kube.event_store import Words
from kube.events import Past, Reference
from kube.resources import PODGROUPS
from tests.builders import a_group, a_pod
from tests.fakes.apiserver import background
from tests.unit.controller.fakes import Recorder

pytestmark = pytest.mark.looptime

GROUP = a_group("g").view()
POD = a_pod("m").gpu(1).card("A|B").in_group("g").gated().view()


def spreading(message: str) -> Lift:
    return Lift(POD, "q", {"A": 1}, {}, NodeRequirement(), POD, Spread(GROUP, message))


async def test_a_spread_task_is_said_once_of_its_group_whatever_the_cards() -> None:
    recorder = Recorder()
    announcements = Announcements(recorder)
    async with background(announcements.run()):
        announcements.lifted(spreading("A and B"))
        await asyncio.sleep(1)
        announcements.lifted(spreading("B and C"))
        await asyncio.sleep(5)
    assert recorder.emitted == [
        ("PodGroup g", reasons.TASK_SPREAD, event_note(reasons.TASK_SPREAD, "A and B"))
    ]


async def test_a_lift_that_spreads_nothing_says_nothing() -> None:
    recorder = Recorder()
    announcements = Announcements(recorder)
    async with background(announcements.run()):
        announcements.lifted(Lift(POD, "q", {"A": 1}, {}, NodeRequirement(), POD))
        await asyncio.sleep(5)
    assert recorder.emitted == []


async def test_a_new_leader_does_not_say_it_again() -> None:
    about = Reference.of(PODGROUPS, "g", "ml", GROUP.uid)
    words = Words("Warning", reasons.TASK_SPREAD, "A and B", "Lift")
    past = Past("e", about, words, 1, datetime.now(UTC))

    async def history(hear: Callable[[Past], None]) -> None:
        hear(past)

    recorder = Recorder()
    announcements = Announcements(recorder, history=history)
    async with background(announcements.run()):
        await asyncio.sleep(1)
        announcements.lifted(spreading("A and B"))
        await asyncio.sleep(5)
    assert recorder.emitted == []
