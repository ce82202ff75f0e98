"""Who stands in for a pod that may get another card is charged, and a member of nothing: it completes no gang."""

import pytest

from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue, a_scheduling_group
from tests.builders.pods import PodBuilder
from tests.unit.core.binding.deciding import binder

KINDS = pytest.mark.parametrize("kind", ["annotations", "PodGroup of Kubernetes"])


def member(number: int, kind: str) -> PodBuilder:
    pod = a_pod(f"m{number}").gpu(1).card("A|B").in_queue("q").created(f"2024-01-01T00:00:0{number}Z")
    return pod.in_gang("g", 4, owner="j") if kind == "annotations" else pod.in_scheduling_group("g")


def let_in(number: int, kind: str) -> Pod:
    ungated = member(number, kind).recorded_in_gang().put("spec", "schedulingGates", value=[])
    return ungated.charged("q").assigned({"A": 1}).together(4).view()


def half_a_gang(kind: str) -> tuple[Ledger, list[Pod]]:
    """Of a gang of four two are in for A, and two wait. There is A for one more of them, and B for those that are in alone."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 3, "B": 2}).view())
    ledger.put_group(a_scheduling_group("g").min_count(4).view())
    inside = [let_in(number, kind) for number in (0, 1)]
    for pod in (*inside, *(member(number, kind).gated().view() for number in (2, 3))):
        ledger.put_pod(pod)
    return ledger, inside


def assert_still_half(ledger: Ledger, inside: list[Pod]) -> None:
    group = ledger.group_of(inside[0])
    assert group is not None
    assert len(ledger.members(group)) == 4
    progress = ledger.groups.progress(group)
    assert (progress.counted, progress.unfinished) == (2, True)
    assert [each.pod.name for each in Planner(ledger).decide("q") if isinstance(each, Lift)] == []


@KINDS
def test_they_complete_no_gang_after_a_change_of_leaders(kind: str) -> None:
    """The former leader may have granted binds to a node of the other card: the new one holds that card for each of them."""
    ledger, inside = half_a_gang(kind)
    binds = binder(ledger)
    for pod in inside:
        binds.hold_outcomes(pod)
    assert ledger.used("q", "B") == 2000
    assert_still_half(ledger, inside)


@KINDS
def test_they_complete_no_gang_while_binds_are_under_way(kind: str) -> None:
    ledger, inside = half_a_gang(kind)
    binds = binder(ledger)
    for pod in inside:
        found = binds.decide(pod, "b")
        assert not isinstance(found, Refusal), found
        binds.book(pod, "b", found)
    assert (ledger.used("q", "A"), ledger.used("q", "B")) == (2000, 2000)
    assert_still_half(ledger, inside)
