"""However many members a gang has, and however much they differ, no step of a pass is longer for it. In calls, not in time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.objects import Pod
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, QueueBuilder
from tests.builders.pods import PodBuilder
from tests.fakes.counted import longest_step
from tests.unit.core.plan.stepping import all_passes

MARGIN = 1.3
"""The size of the last piece, and what a first one makes for all."""
FEW, MANY = 1_000, 4_000

Kind = Callable[[int], tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]]


def asking(expression: str = "A") -> PodBuilder:
    return a_pod("p").gpu(1).card(expression).in_group("g").gated()


def queue(number: int) -> QueueBuilder:
    return a_queue("q").cards({"A": number, "B": number})


def group(number: int) -> GroupBuilder:
    return a_group("g").in_queue("q").min_member(number)


def fitting(number: int) -> tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]:
    return queue(number), group(number), lambda _: asking()


def choosing(number: int) -> tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]:
    return queue(number), group(number), lambda _: asking("A|B")


def lacking_quota(number: int) -> tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]:
    return queue(number // 2), group(number), lambda _: asking()


def lacking_members(number: int) -> tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]:
    return queue(number), group(number + 1), lambda _: asking()


def of_tasks(number: int) -> tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]:
    tasks = [f"t{task}" for task in range(20)]
    gang = group(number)
    for task in tasks:
        gang = gang.min_task(task, number // len(tasks))
    return queue(number), gang, lambda member: asking().task(tasks[member % len(tasks)])


def each_with_cpu_of_its_own(number: int) -> tuple[QueueBuilder, GroupBuilder, Callable[[int], PodBuilder]]:
    """CPU is short for all of them and not for those that are wanted, so they are told apart by it."""
    tight = queue(number).capability(cpu=f"{number * (number + 1) // 2 - 1}m", memory="1Ti")
    return tight, group(number - 1), lambda member: asking().request("cpu", f"{member + 1}m")


def books(kind: Kind, number: int) -> Ledger:
    quota, gang, member = kind(number)
    ledger = Ledger(Settings())
    for card in "AB":
        ledger.put_node(a_node(card.lower()).card(card, number).view())
    ledger.put_queue(quota.view())
    ledger.put_group(gang.view())
    views: dict[int, Pod] = {}
    several = kind in (of_tasks, each_with_cpu_of_its_own)
    for each in range(number):
        shape = each if several else 0
        view = views.setdefault(shape, member(shape).view()) if shape not in views else views[shape]
        ledger.put_pod(replace(view, name=f"p{each:05}", uid=f"uid-{each:05}"))
    finish(ledger.settle())
    return ledger


@pytest.mark.parametrize(
    "kind", [fitting, choosing, lacking_quota, lacking_members, of_tasks, each_with_cpu_of_its_own]
)
def test_no_step_is_longer_in_a_larger_gang(kind: Kind) -> None:
    few, many = (longest_step(all_passes(books(kind, number))) for number in (FEW, MANY))
    assert many < MARGIN * few
