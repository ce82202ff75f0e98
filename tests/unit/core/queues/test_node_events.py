"""What the event of a node costs: its own node, and no pod that is counted as before. In calls, not in time."""

from itertools import pairwise

import pytest

from core.objects import Pod
from core.queues import backlog
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue
from tests.fakes.counted import calls_of

KNOWN = a_node("n0").card("A", 8)


def books(pods: int) -> Ledger:
    """Pods of a card that is known, half of them on a node and half of them waiting."""
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("q").cards({"A": 5}).view())
    ledger.put_node(KNOWN.view())
    for number in range(pods):
        pod = a_pod(f"p{number}").gpu(1).card("A").in_queue("q")
        ledger.put_pod((pod.bound_to("n0") if number % 2 else pod.gated()).view())
    finish(ledger.settle())
    return ledger


def costs(pods: int) -> dict[str, int]:
    """The calls that each event takes, with what it leaves to be booked anew."""
    ledger = books(pods)
    events = {
        "a heartbeat": lambda: ledger.put_node(KNOWN.label("beat", "1").view()),
        "one more joins": lambda: ledger.put_node(a_node("n1").card("A", 8).view()),
        "one of another card joins": lambda: ledger.put_node(a_node("n2").card("B", 8).view()),
        "it is cordoned": lambda: ledger.put_node(a_node("n1").card("A", 8).cordoned().view()),
        "it leaves": lambda: ledger.drop_node("n1"),
    }

    def settled(what: str) -> None:
        events[what]()
        finish(ledger.settle())

    return {what: calls_of(lambda: settled(what)) for what in events}  # noqa: B023 - called at once


def test_an_event_of_a_node_costs_no_pod_of_its_card() -> None:
    """With 15 nodes joining at once, each booking ten thousand pods anew, both replicas were deaf for 24 s."""
    costs(2)
    few, many = costs(20), costs(400)
    assert {what: many[what] - few[what] for what in few} == dict.fromkeys(few, 0)


def test_a_card_that_is_none_any_more_has_its_pods_booked_anew_in_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger, booked, book = books(400), list[str](), Ledger._book

    def noted(self: Ledger, pod: Pod) -> None:
        booked.append(pod.uid)
        book(self, pod)

    monkeypatch.setattr(Ledger, "_book", noted)
    ledger.put_node(a_node("n0").view())
    assert booked == []
    seen = [0, *(len(booked) for _ in ledger.settle())]
    assert len(set(booked)) == 400
    assert max(after - before for before, after in pairwise(seen)) == backlog._IN_ONE_STEP
