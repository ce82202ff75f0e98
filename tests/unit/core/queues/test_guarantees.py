"""Guarantees of CPU and memory through the tree: what is guaranteed to a child is a part of what its parent is."""

import pytest

from core.hierarchy import QueueTree
from core.names import ROOT_QUEUE
from core.queues.capacity import Capacity
from tests.builders import a_node, a_queue
from tests.builders.objects import QueueBuilder


def limits(*queues: QueueBuilder, tree: bool = True) -> dict[str, int]:
    """How many cores each may use of a hundred, which none names itself."""
    levels = QueueTree() if tree else None
    capacity = Capacity("cluster", levels)
    capacity.put_node(a_node("n").allocatable("cpu", 100).view())
    for each in (queue.view() for queue in queues):
        if levels is not None:
            levels.put(each.name, each.parent)
        capacity.put_queue(each)
    return {queue.view().name: capacity.limit(queue.view().name)["cpu"] // 1000 for queue in queues}


ORG = a_queue("org").guarantee(cpu=40)
RED, BLUE = (a_queue(name).child_of("org") for name in ("red", "blue"))


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ((ORG, a_queue("solo")), {"org": 100, "solo": 60}),
        ((ORG, RED.guarantee(cpu=30), a_queue("solo")), {"org": 100, "red": 100, "solo": 60}),
        ((ORG, RED.guarantee(cpu=30), BLUE), {"org": 100, "red": 100, "blue": 70}),
        (
            (ORG, RED.guarantee(cpu=30), BLUE.guarantee(cpu=20), a_queue("solo")),
            {"org": 100, "red": 80, "blue": 70, "solo": 50},
        ),
        ((RED.guarantee(cpu=30), a_queue("solo")), {"red": 100, "solo": 100}),
    ],
)
def test_nothing_is_guaranteed_twice(queues: tuple[QueueBuilder, ...], expected: dict[str, int]) -> None:
    """A queue whose parent is not there takes nothing from others: nobody is let in there."""
    assert limits(*queues) == expected


def test_without_a_tree_each_guarantee_counts_by_itself() -> None:
    assert limits(ORG, RED.guarantee(cpu=30), a_queue("solo"), tree=False)["solo"] == 30


def test_queues_in_a_circle_are_counted_once() -> None:
    found = limits(a_queue("a").child_of("b").guarantee(cpu=10), a_queue("b").child_of("a").guarantee(cpu=20))
    assert set(found) == {"a", "b"}
    assert all(0 <= cores <= 100 for cores in found.values())


def test_another_parent_is_noticed() -> None:
    levels = QueueTree()
    capacity = Capacity("cluster", levels)
    capacity.put_node(a_node("n").allocatable("cpu", 100).view())
    for each in (ORG.view(), RED.guarantee(cpu=30).view(), a_queue("solo").view()):
        levels.put(each.name, each.parent)
        capacity.put_queue(each)
    assert capacity.limit("solo")["cpu"] == 60_000
    moved = a_queue("red").child_of(ROOT_QUEUE).guarantee(cpu=30).view()
    levels.put(moved.name, moved.parent)
    assert capacity.put_queue(moved)
    assert capacity.limit("solo")["cpu"] == 30_000
