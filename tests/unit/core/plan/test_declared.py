"""A Volcano Job is let in by what it declares, once; afterwards its pods count."""

from typing import Any

import pytest

from core import reasons
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, PodBuilder, QueueBuilder

QUEUE = a_queue("q").cards({"A": 4, "B": 2})


def books(group: GroupBuilder, queue: QueueBuilder = QUEUE, **cards: Any) -> Ledger:
    ledger = Ledger(Settings.model_validate({"cards": cards}))
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 8).view())
    ledger.put_queue(queue.view())
    ledger.put_group(group.view())
    return ledger


def group(request: dict[str, int] | str, *, minimum: int = 1) -> GroupBuilder:
    declared = a_group("g").in_queue("q").min_member(minimum).cards(request)
    return declared.owned_by("Job", "train", api_version="batch.volcano.sh/v1alpha1")


def member(name: str, card: str = "A") -> PodBuilder:
    return a_pod(name).gpu(1).card(card).in_group("g").gated()


def decide(ledger: Ledger, *pods: PodBuilder) -> list[Decision]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return Planner(ledger).decide("q")


def lifted(decisions: list[Decision]) -> list[str]:
    return [decision.pod.name for decision in decisions if isinstance(decision, Lift)]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param({"A": 4}, ["p", "r"], id="reaches the quota"),
        pytest.param({"A": 5}, [], id="one too many"),
        pytest.param({"A|B": 6}, ["p", "r"], id="alternatives are summed up"),
        pytest.param({"A|B": 7}, [], id="one more than the sum"),
        pytest.param({"A": 4, "B": 3}, [], id="one of two cards is short"),
        pytest.param({}, ["p", "r"], id="declares nothing"),
        pytest.param('{"A": "many"}', [], id="cannot be read"),
    ],
)
def test_no_pod_is_lifted_before_all_that_is_declared_fits(
    request_: dict[str, int] | str, expected: list[str]
) -> None:
    assert lifted(decide(books(group(request_)), member("p"), member("r"))) == expected


def test_a_group_of_any_other_owner_is_judged_by_its_pods_alone() -> None:
    ledger = books(a_group("g").in_queue("q").cards({"A": 99}).owned_by("ReplicaSet", "web"))
    assert lifted(decide(ledger, member("p"))) == ["p"]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        pytest.param(member("first").bound_to("a"), ["p"], id="bound"),
        pytest.param(a_pod("first").gpu(1).card("A").in_group("g"), ["p"], id="lifted"),
        pytest.param(member("first").bound_to("a", phase="Succeeded"), [], id="ended"),
        pytest.param(member("first").bound_to("a").terminating(), [], id="on its way out"),
    ],
)
def test_once_a_pod_is_admitted_the_declaration_is_ignored(first: PodBuilder, expected: list[str]) -> None:
    assert lifted(decide(books(group({"A": 99})), first, member("p"))) == expected


def test_what_others_have_reserved_counts_against_the_declaration() -> None:
    ledger = books(group({"A": 4}))
    assert lifted(decide(ledger, a_pod("other").gpu(1).card("A").in_queue("q"), member("p"))) == []
    ledger.wakeups.take_queues()
    ledger.drop_pod(a_pod("other").view().uid)
    assert set(ledger.wakeups.take_queues()) == {"q"}
    assert lifted(Planner(ledger).decide("q")) == ["p"]


def test_cpu_comes_first_and_all_members_are_told_with_their_podgroup() -> None:
    ledger = books(group({"A": 9}).min_resources(cpu=3), QUEUE.capability(cpu=2))
    views = [member(name).view() for name in ("p", "r")]
    for view in views:
        ledger.put_pod(view)
    assert [(event.object, event.reason) for event in plan(ledger, views).events] == [
        ("PodGroup ml/g", reasons.INSUFFICIENT_CPU_QUOTA),
        ("Pod ml/p", reasons.INSUFFICIENT_CPU_QUOTA),
        ("Pod ml/r", reasons.INSUFFICIENT_CPU_QUOTA),
    ]


def test_a_pod_that_wakes_a_group_by_giving_cpu_back_is_noticed() -> None:
    ledger = books(group({"A": 1}).min_resources(cpu=2), QUEUE.capability(cpu=2))
    web = a_pod("web").container("main").request("cpu", 1).in_queue("q").bound_to("a")
    assert lifted(decide(ledger, web, member("p"))) == []
    ledger.wakeups.take_queues()
    ledger.drop_pod(web.view().uid)
    assert set(ledger.wakeups.take_queues()) == {"q"}
    assert lifted(Planner(ledger).decide("q")) == ["p"]


def test_a_group_that_is_declared_to_fit_still_has_to_fit_as_a_gang() -> None:
    ledger = books(group({"A": 1}, minimum=5))
    decisions = decide(ledger, *(member(f"m{i}") for i in range(5)))
    assert lifted(decisions) == []
    assert isinstance(decisions[0], Hold)
    assert "needs 5 more members at once, 4 fit" in decisions[0].why.message


def test_an_empty_queue_denies_a_group_to_enqueue_and_a_pod_to_allocate() -> None:
    ledger = books(group({"A": 1}), a_queue("q"))
    (hold,) = decide(ledger, member("p"))
    assert isinstance(hold, Hold)
    assert hold.why.code == reasons.EMPTY_QUEUE_CAPABILITY
    assert "deny it to enqueue" in hold.why.message


def test_in_a_closed_queue_nothing_is_said_about_the_declaration() -> None:
    (hold,) = decide(books(group({"A": 99}), QUEUE.state("Closed")), member("p"))
    assert isinstance(hold, Hold)
    assert (hold.why.code, hold.announced) == (reasons.QUEUE_NOT_OPEN, False)


def test_a_group_that_is_kept_out_is_the_head_of_a_fifo_queue() -> None:
    ledger = books(group({"A": 99}), QUEUE.fifo())
    later = a_pod("later").gpu(1).card("A").in_queue("q").gated().created("2030-01-01T00:00:00Z")
    assert lifted(decide(ledger, member("p"), later)) == []
