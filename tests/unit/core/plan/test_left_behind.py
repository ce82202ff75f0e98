"""Thousands of pods at the gate that are moved from queue to queue all the time keep nobody else waiting."""

from dataclasses import replace

import pytest

from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.backlog import AT_ONCE
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue

MANY = 4 * AT_ONCE


def books(minimum: int) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * MANY).view())
    for name in "qrs":
        ledger.put_queue(a_queue(name).cards({"A": 2 * MANY if name == "s" else 3}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    pod = a_pod("p").gpu(1).card("A").in_group("g").gated().view()
    for number in range(MANY):
        ledger.put_pod(replace(pod, name=f"p{number:03}", uid=f"uid-{number:03}"))
    ledger.put_pod(a_pod("other").gpu(1).card("A").in_queue("s").gated().view())
    finish(ledger.settle())
    return ledger


@pytest.mark.parametrize("minimum", [1, MANY])
def test_others_are_let_in_by_the_first_pass(minimum: int) -> None:
    ledger, flips, pauses = books(minimum), 0, 0
    ledger.wakeups.look_at(*ledger.queues)
    lifted = set()
    for decision in Planner(ledger).run(ledger.wakeups.take_queues()):
        if isinstance(decision, Lift):
            lifted.add(decision.pod.name)
        pauses += decision is None
        assert pauses < 2000, "the pass comes to its end"
        if decision is None:
            flips += 1
            ledger.put_group(a_group("g").in_queue("qr"[flips % 2]).min_member(minimum).view())
    assert "other" in lifted
    assert flips > 0
    for name in "qr":
        assert ledger.used(name, "A") <= 3000, "no quota is exceeded meanwhile"


def test_on_a_pod_that_is_left_behind_nothing_is_decided() -> None:
    """It would be let in by the queue that it has left."""
    ledger = books(1)
    ledger.put_group(a_group("g").in_queue("r").min_member(1).view())
    assert ledger.left_behind("uid-000")
    assert ledger.sums_settled
    entry = ledger.entry("uid-000")
    assert entry is not None
    assert ledger.current(entry) is None
    finish(ledger.settle())
    assert ledger.settled
    now = ledger.entry("uid-000")
    assert now is not None
    assert now.queue == "r"


def test_once_it_is_over_they_are_decided_on_by_their_queue_of_then() -> None:
    ledger = books(1)
    ledger.wakeups.look_at(*ledger.queues)
    planner = Planner(ledger)
    ledger.put_group(a_group("g").in_queue("r").min_member(1).view())
    lifted = [one for one in planner.run(ledger.wakeups.take_queues()) if isinstance(one, Lift)]
    assert {(one.queue, one.pod.name == "other") for one in lifted} == {("r", False), ("s", True)}
    assert ledger.used("r", "A") == 3000
