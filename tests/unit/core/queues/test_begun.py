"""Whether others of a group are in, by what is seen of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.objects import Pod
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.counted import calls_of

NAMES = ("a", "b", "c")


def member(name: str, group: str = "g") -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_queue("q").in_group(group)


def states(name: str) -> list[Pod | None]:
    """What may be seen of a pod, one after the other in any order."""
    return [
        None,
        member(name).gated().view(),
        member(name, "other").gated().view(),
        member(name).gated("example.com/other").view(),
        member(name).put("spec", "schedulingGates", value=[{"name": "example.com/other"}]).view(),
        member(name).charged("q").view(),
        member(name, "other").charged("q").view(),
        member(name).charged("q").bound_to("n").view(),
        member(name).charged("q").bound_to("n").phase("Succeeded").view(),
        member(name).charged("q").bound_to("n").phase("Failed").view(),
        member(name).charged("q").bound_to("n").phase("Unknown").view(),
        member(name).charged("q").bound_to("n").terminating().view(),
        a_pod(name).in_group("g").bound_to("n").view(),
        a_pod(name).gpu(1).card("A").bound_to("n").view(),
    ]


def a_ledger() -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 8}).view())
    return ledger


def by_looking_at_each(ledger: Ledger, pod: Pod) -> bool:
    members = (ledger.observed(entry.pod.uid) for entry in ledger.entries_of(pod.group_key))
    return any(
        one is not None and one.uid != pod.uid and not one.terminal and counts(one, ledger.stages)
        for one in members
    )


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, len(states("a")) - 1)), max_size=12))
def test_it_is_what_one_finds_by_looking_at_each_member(events: list[tuple[str, int]]) -> None:
    ledger = a_ledger()
    for name, state in events:
        pod = states(name)[state]
        if pod is None:
            ledger.drop_pod(member(name).view().uid)
        else:
            ledger.put_pod(pod)
        for group in ("g", "other"):
            for asked in NAMES:
                waits = member(asked, group).gated().view()
                seen = ledger.observed(waits.uid) or waits
                assert ledger.others_are_in(waits) == by_looking_at_each(ledger, seen)


def test_a_lift_under_way_does_not_count_and_one_that_was_seen_does() -> None:
    ledger = a_ledger()
    one, other = member("a").gated().view(), member("b").gated().view()
    ledger.put_pod(one)
    ledger.put_pod(other)
    ledger.assume(one.ungated({names.CHARGED_QUEUE_ANNOTATION: "q"}))
    assert not ledger.others_are_in(other)
    ledger.put_pod(member("a").charged("q").view())
    assert ledger.others_are_in(other)
    assert not ledger.others_are_in(one), "it is not another one than itself"


@pytest.mark.parametrize(
    ("others", "together", "tasks", "wait"),
    [
        (0, 2, {}, False),
        (1, 2, {}, True),
        (2, 2, {}, False),
        (2, 3, {}, True),
        (3, 2, {}, False),
        (3, 2, {"worker": 1}, True),
        (0, 2, {"worker": 1}, False),
    ],
)
def test_others_wait_for_a_member_as_long_as_fewer_are_in_than_have_to_be(
    others: int, together: int, tasks: dict[str, int], *, wait: bool
) -> None:
    """Where tasks have a minimum it may be what a task lacks."""
    ledger = a_ledger()
    group = a_group("g").in_queue("q").min_member(2)
    for task, least in tasks.items():
        group = group.min_task(task, least)
    ledger.put_group(group.view())
    for number in range(others):
        ledger.put_pod(member(f"in{number}").charged("q").view())
    waits = member("waits").gated().view()
    ledger.put_pod(waits)
    assert ledger.others_wait_for(waits, together) == wait


def test_a_question_costs_the_same_for_thousands_of_members_of_whom_none_is_in() -> None:
    ledger, waits = a_ledger(), member("a").gated().view()
    costs = []
    for count in (10, 2_000):
        for number in range(count):
            ledger.put_pod(replace(waits, name=f"p{number}", uid=f"u{number}"))
        costs.append(calls_of(lambda: ledger.others_are_in(waits)))
    assert costs[0] == costs[1]
