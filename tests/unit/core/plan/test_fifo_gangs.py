"""Which gangs hold up a fifo queue: those that wait for what others wait for too, not those that wait for something of their own."""

import pytest

from core import reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

MINIMUM = 4


def member(number: int, *, count: int = 1, let_in: bool = False) -> PodBuilder:
    pod = a_pod(f"m{number}").gpu(count).card("A").in_group("g").created(f"2024-01-01T00:00:{number:02}Z")
    return pod.charged("q").assigned({"A": count}).together(MINIMUM) if let_in else pod.gated()


def single() -> PodBuilder:
    """Younger than every member of the gang."""
    return a_pod("single").gpu(1).card("A").in_queue("q").gated().created("2024-01-01T00:00:59Z")


def books(quota: int, *pods: PodBuilder, minimum: int = MINIMUM) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": quota}).fifo().view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    for pod in (*pods, single()):
        ledger.put_pod(pod.view())
    return ledger


def decided(ledger: Ledger) -> tuple[list[str], dict[str, str]]:
    """Who is lifted, and why the others are held."""
    decisions = Planner(ledger).decide("q")
    lifted = sorted(each.pod.name for each in decisions if isinstance(each, Lift))
    return lifted, {each.pod.name: each.why.code for each in decisions if isinstance(each, Hold)}


@pytest.mark.parametrize("let_in", [0, 2], ids=["none is in", "some are in"])
def test_a_gang_whose_members_are_not_all_there_holds_up_nobody(let_in: int) -> None:
    there = [member(number, let_in=number < let_in) for number in range(MINIMUM - 1)]
    lifted, held = decided(books(8, *there))
    assert lifted == ["single"]
    assert set(held.values()) == {reasons.GANG_INCOMPLETE}


@pytest.mark.parametrize("asked", [7, 99])
def test_nor_does_one_that_was_let_in_and_cannot_be_finished_by_its_queues_quota(asked: int) -> None:
    """Two of four are in and hold two of eight cards: there is none for the other two, whoever goes."""
    there = [member(0, let_in=True), member(1, let_in=True), member(2, count=asked), member(3, count=asked)]
    lifted, held = decided(books(8, *there))
    assert lifted == ["single"]
    assert held.keys() == {"m2", "m3"}


def test_one_that_can_be_finished_as_soon_as_others_go_holds_up_all() -> None:
    other = a_pod("other").gpu(5).card("A").in_queue("q").charged("q").assigned({"A": 5})
    there = [member(0, let_in=True), member(1, let_in=True), member(2, count=3), member(3, count=3)]
    lifted, held = decided(books(8, *there, other))
    assert lifted == []
    assert held.keys() == {"m2", "m3", "single"}


def test_a_gang_that_was_never_let_in_holds_up_all_by_asking_for_more_than_the_queue_has() -> None:
    """As a pod does that asks for as much: that is what fifo means."""
    lifted, held = decided(books(8, *(member(number, count=3) for number in range(MINIMUM))))
    assert lifted == []
    assert held.keys() == {"m0", "m1", "m2", "m3", "single"}
