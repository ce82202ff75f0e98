"""A PodGroup that pods name beside a gang of their own: when it comes or asks for fewer, they are looked at, whoever else names it."""

from typing import Final

import pytest

from core import names, reasons
from core.plan.decision import Hold, Lift
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue, a_scheduling_group
from tests.builders.pods import PodBuilder
from tests.unit.core.plan.stepping import all_passes

MANY: Final = 150
"""More than anybody would go through one by one."""


def member(name: str, gang: str, queue: str = "q") -> PodBuilder:
    pod = a_pod(name).gpu(1).card("A").in_queue(queue).in_gang(gang, 2, owner=gang)
    return pod.in_scheduling_group("beside").gated()


def ended(name: str) -> PodBuilder:
    pod = member(name, "old").put("spec", "schedulingGates", value=[]).recorded_in_gang()
    return pod.charged("q").assigned({"A": 1}).bound_to("n", phase="Succeeded")


OTHERS: Final = {
    "nobody": [],
    "pods that have ended": [ended(f"old{number}") for number in range(MANY)],
    "pods that wait in another queue": [member(f"o{number}", "other", "other") for number in range(MANY)],
}


def books(*others: PodBuilder) -> Ledger:
    """Others that name the PodGroup, then a gang of two in queue `q` that does."""
    ledger = Ledger(Settings())
    ledger.serve_groups(True, names.KUBERNETES_GROUPS)
    ledger.put_node(a_node("n").card("A", 500).view())
    for queue in ("q", "other"):
        ledger.put_queue(a_queue(queue).cards({"A": 500}).view())
    for pod in (*others, member("m0", "mine"), member("m1", "mine")):
        ledger.put_pod(pod.view())
    return ledger


def lifted(ledger: Ledger) -> set[str]:
    """Who is lifted where only those queues are looked at that something has happened to."""
    return {item.pod.name for item in all_passes(ledger) if isinstance(item, Lift)}


def why(ledger: Ledger) -> set[str]:
    return {item.why.code for item in all_passes(ledger) if isinstance(item, Hold)}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_they_are_let_in_once_it_is_there(others: list[PodBuilder]) -> None:
    ledger = books(*others)
    assert lifted(ledger) == set()
    ledger.put_group(a_scheduling_group("beside").min_count(1).view())
    assert {"m0", "m1"} <= lifted(ledger)


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_they_are_let_in_once_it_needs_no_more_than_they_are(others: list[PodBuilder]) -> None:
    ledger = books(*others)
    ledger.put_group(a_scheduling_group("beside").min_count(3).view())
    assert lifted(ledger) == set()
    ledger.put_group(a_scheduling_group("beside").min_count(2).view())
    assert {"m0", "m1"} <= lifted(ledger)


def test_they_are_told_that_it_is_gone() -> None:
    ledger = books()
    ledger.put_group(a_scheduling_group("beside").min_count(3).view())
    before = why(ledger)
    ledger.drop_group(a_scheduling_group("beside").view().key)
    assert (before, why(ledger)) == ({reasons.GANG_MALFORMED}, {reasons.POD_GROUP_NOT_FOUND})


def test_only_queues_in_which_such_pods_wait_are_looked_at() -> None:
    ledger = books(*OTHERS["pods that have ended"])
    ledger.put_queue(a_queue("third").cards({"A": 1}).view())
    ledger.put_pod(a_pod("single").gpu(2).card("A").gated().in_queue("third").view())
    ledger.wakeups.take_queues()
    ledger.put_group(a_scheduling_group("beside").min_count(1).view())
    assert set(ledger.wakeups.take_queues()) == {"q"}
    for name in ("m0", "m1"):
        ledger.drop_pod(member(name, "mine").view().uid)
    ledger.wakeups.take_queues()
    ledger.put_group(a_scheduling_group("beside").min_count(2).view())
    assert not ledger.wakeups.take_queues()
