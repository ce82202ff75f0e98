"""Pods that ask for the same: what was found out about the first that is let in is not found out again about the others."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from core import reasons
from core.objects import DeviceClass
from core.plan.decision import Decision, Hold, Lift
from core.plan.judge import Judge
from core.plan.lift import Planner
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import DEFAULT_NAMESPACE, PodBuilder
from tests.fakes.counted import calls_of
from tests.unit.core.plan.lifting import books

PODS = 200
MOST_CALLS = 130
"""For each pod that is let in as the one before it was. Each judged by itself takes two and a half times as many."""


def alike(number: int, card: str = "H200") -> PodBuilder:
    pod = a_pod(f"p{number:03}").gpu(1).card(card).request("cpu", 1).in_queue("q").gated()
    return pod.put("metadata", "resourceVersion", value="7")


def crowd(count: int = PODS, *, quota: int = PODS, settings: Settings | None = None) -> Ledger:
    ledger = books(a_queue("q").cards({"H200": quota}), settings=settings)
    for number in range(count):
        ledger.put_pod(alike(number).view())
    return ledger


def run(ledger: Ledger, after_first: Callable[[], object] = lambda: None) -> list[Decision]:
    """The decisions of a pass; something happens once the first pod has been let in."""
    found: list[Decision] = []
    for decision in Planner(ledger).run(["q"]):
        if decision is not None:
            found.append(decision)
            if len(found) == 1:
                after_first()
    return found


def lifted(found: list[Decision]) -> list[str]:
    return [decision.pod.name for decision in found if isinstance(decision, Lift)]


def why(found: list[Decision]) -> set[str]:
    return {decision.why.code for decision in found if isinstance(decision, Hold)}


def test_letting_in_one_more_that_asks_for_the_same_costs_its_booking() -> None:
    few, many = crowd(PODS), crowd(2 * PODS, quota=2 * PODS)
    of_few, of_many = (calls_of(partial(run, ledger)) for ledger in (few, many))
    assert few.used("q", "H200") == PODS * 1000
    assert many.used("q", "H200") == 2 * PODS * 1000
    assert (of_many - of_few) / PODS <= MOST_CALLS


@pytest.mark.parametrize("members", [0, 2])
def test_of_those_who_have_no_room_one_is_looked_at_for_all(
    members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not a gang waits in their queue: each look at a thousand full nodes took five milliseconds."""
    ledger, looked_at, judge = crowd(quota=0), list[str](), Judge.judge
    ledger.put_group(a_group("g").in_queue("q").min_member(3).view())
    for number in range(members):
        ledger.put_pod(alike(PODS + number).in_group("g").view())

    def noted(self: Judge, entry: Entry, *others: Any) -> Steps[Decision | None]:
        looked_at.append(entry.pod.name)
        return judge(self, entry, *others)

    monkeypatch.setattr(Judge, "judge", noted)
    assert len(run(ledger)) == PODS + members
    assert looked_at == ["p000"]


def test_all_get_the_same_and_each_its_own_annotations() -> None:
    first, second = run(crowd(2))
    assert isinstance(first, Lift)
    assert isinstance(second, Lift)
    assert second.requirement == first.requirement
    assert second.assigned == first.assigned == {"H200": 1}
    assert second.lifted == second.pod.ungated({**second.pod.annotations, **first.records})


def test_the_quota_ends_where_it_ends() -> None:
    found = run(crowd(10, quota=4))
    assert lifted(found) == [f"p00{number}" for number in range(4)]
    assert why(found) == {reasons.INSUFFICIENT_SCALAR_QUOTA}


def test_so_do_cpu_and_memory() -> None:
    ledger = crowd(10)
    ledger.put_queue(a_queue("q").cards({"H200": PODS}).capability(cpu=3).view())
    found = run(ledger)
    assert len(lifted(found)) == 3
    assert why(found) == {reasons.INSUFFICIENT_CPU_QUOTA}


def test_others_in_between_have_their_part() -> None:
    """Two wishes in turns, of one card."""
    ledger = books(a_queue("q").cards({"H200": 5}))
    for number in range(10):
        pod = alike(number)
        ledger.put_pod((pod.request("memory", "1Gi") if number % 2 else pod).view())
    assert lifted(run(ledger)) == [f"p00{number}" for number in range(5)]


def test_a_quota_that_is_cut_meanwhile_holds_the_next() -> None:
    ledger = crowd(3)
    found = run(ledger, lambda: ledger.put_queue(a_queue("q").cards({"H200": 1}).view()))
    assert lifted(found) == ["p000"]


def test_a_queue_that_is_closed_meanwhile_holds_the_next() -> None:
    ledger = crowd(3)
    closed = a_queue("q").cards({"H200": PODS}).state("Closed").view()
    found = run(ledger, lambda: ledger.put_queue(closed))
    assert lifted(found) == ["p000"]
    assert why(found) == {reasons.QUEUE_NOT_OPEN}


def test_nodes_that_go_meanwhile_hold_the_next() -> None:
    ledger = crowd(3, settings=Settings.model_validate({"cards": {"resources": {"H200": "nvidia.com/gpu"}}}))
    found = run(ledger, lambda: ledger.drop_node("h1"))
    assert lifted(found) == ["p000"]
    assert why(found) == {reasons.NO_FREE_CARD}


def test_nodes_that_tell_the_card_otherwise_meanwhile_are_what_the_next_is_narrowed_to() -> None:
    ledger = crowd(2)
    first, second = run(
        ledger, lambda: ledger.put_node(a_node("h3").card("H200", 4, prefix="amd.com/gpu").view())
    )
    assert isinstance(first, Lift)
    assert isinstance(second, Lift)
    assert second.requirement != first.requirement


def test_a_device_class_that_comes_meanwhile_counts_for_the_next() -> None:
    ledger = crowd(3)
    limited = a_queue("q").cards({"H200": 3}).devices({"capability": {"c": {"count": 1}}})
    ledger.put_queue(limited.view())
    found = run(ledger, lambda: ledger.put_class(DeviceClass("c", extended="nvidia.com/gpu")))
    assert lifted(found) == ["p000"]
    assert why(found) == {reasons.INSUFFICIENT_DEVICE_QUOTA}


def test_podgroups_that_are_served_only_now_hold_the_next_of_volcanos_scheduler() -> None:
    ledger = books(a_queue("q").cards({"H200": 3}))
    for number in range(3):
        ledger.put_pod(alike(number).scheduler("volcano").view())
    found = run(ledger, lambda: ledger.serve_groups(True))
    assert lifted(found) == ["p000"]
    assert why(found) == {reasons.POD_GROUP_NOT_FOUND}


def test_one_whose_lift_was_refused_is_judged_by_itself() -> None:
    ledger = crowd(3)
    planner = Planner(ledger)
    planner.refuse(alike(1).view().uid, "no")
    found = [decision for decision in planner.run(["q"]) if decision is not None]
    assert lifted(found) == ["p000", "p002"]
    assert why(found) == {reasons.LIFT_REFUSED}


def test_members_beyond_the_minimum_of_their_group_are_let_in_so_too() -> None:
    ledger = books(a_queue("q").cards({"H200": 6}))
    ledger.put_group(a_group("g").in_queue("q").min_member(1).view())
    for number in range(8):
        ledger.put_pod(alike(number).in_group("g").view())
    found = run(ledger)
    assert len(lifted(found)) == 6
    assert [entry.pod.name for entry in ledger.waiting("q")] == ["p006", "p007"]
    assert ledger.queues_with(f"{DEFAULT_NAMESPACE}/g") == {"q"}


def test_whoever_follows_the_books_hears_of_each() -> None:
    ledger, heard = crowd(3), list[str]()
    ledger.follow(heard.append)
    found = run(ledger)
    assert heard == [decision.pod.uid for decision in found]
