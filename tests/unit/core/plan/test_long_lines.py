"""However many pods wait in a queue with gangs, or in one gang, no step of a pass is longer for it. In calls, not in time."""

from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any

import pytest

from core import names
from core.plan.lift import Planner
from core.plan.units import queues_to_finish, units_of
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish, in_order
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.fakes.counted import longest_step

Steps = Generator[Any, None, Any]

MARGIN = 1.3
"""The size of the last piece, and what a first one makes for all."""
FEW, MANY = 1_000, 4_000


def asking(name: str) -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_queue("q").gated()


def books(*, minimum: int, members: int, alone: int = 0, running: int = 0) -> Ledger:
    """A gang, of which some run, and pods alone, in a queue with less than they ask for."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 8}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    for number in range(running):
        runs = a_pod(f"r{number}").gpu(1).card("A").in_group("g").assigned({"A": 1}).charged("q")
        ledger.put_pod(runs.annotation(names.GANG_ANNOTATION, str(minimum)).bound_to("n").view())
    for number in range(members):
        ledger.put_pod(asking(f"m{number:05}").in_group("g").view())
    for number in range(alone):
        ledger.put_pod(asking(f"p{number:05}").view())
    finish(ledger.settle())
    return ledger


def passing(ledger: Ledger) -> Steps:
    return Planner(ledger).run(["q"])


def passing_again(ledger: Ledger) -> Steps:
    """Everybody is told again what he was told, but one who is new."""
    planner = Planner(ledger)
    for _ in planner.run(["q"]):
        pass
    ledger.put_pod(asking("late").view())
    return planner.run(["q"])


def in_line(ledger: Ledger) -> Steps:
    return units_of(ledger, "q")


@pytest.mark.parametrize(
    ("work", "sizes"),
    [
        (passing, lambda number: {"minimum": 2, "members": 2, "alone": number}),
        (passing_again, lambda number: {"minimum": number, "members": number}),
        (in_line, lambda number: {"minimum": 5, "members": number, "running": 1}),
        (queues_to_finish, lambda number: {"minimum": 5, "members": number, "running": 1}),
    ],
)
def test_no_step_is_longer_where_more_pods_wait(
    work: Callable[[Ledger], Steps], sizes: Callable[[int], dict[str, int]]
) -> None:
    few, many = (longest_step(work(books(**sizes(number)))) for number in (FEW, MANY))
    assert many < MARGIN * few


@pytest.mark.parametrize("step", [3, 7, 999])
def test_what_is_put_in_order_in_steps_is_in_the_order_of_sorted(step: int) -> None:
    numbers = [number * 37 % 101 for number in range(300)]
    for items in (numbers, sorted(numbers), sorted(numbers, reverse=True), [], [1]):
        pairs = list(enumerate(items))
        found = finish(in_order(pairs, lambda pair: pair[1], step))
        assert found == sorted(pairs, key=lambda pair: pair[1])
        assert all(before[1] <= after[1] for before, after in pairwise(found))
