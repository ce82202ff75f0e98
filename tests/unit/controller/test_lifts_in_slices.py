"""For how long nothing else is heard while hundreds of lifts wait to be written: counted in calls.

Ten thousand calls take about five milliseconds, which is what a slice may take.
"""

import asyncio
from collections.abc import Callable

import pytest

from controller.flight import PATIENCE_S
from tests.builders import a_group
from tests.builders.objects import GroupBuilder, PodBuilder
from tests.fakes.counted import CountedLoop, run
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import World, pod

IN_ONE_GO = 15_000
"""Calls: a slice, a step that ends it late, and what the others do in the same round of the loop."""
COUNT = 400


def group(minimum: int) -> GroupBuilder:
    return a_group("g").in_queue("q").min_member(minimum)


def members() -> list[PodBuilder]:
    return [pod(f"p{number}").in_group("g") for number in range(COUNT)]


def hanging(pods: list[PodBuilder], minimum: int = 0) -> World:
    """All of them are let in, and of none the lift is answered."""
    world = World(*pods, quota=COUNT)
    if minimum:
        world.writer.stored["ml/g"] = group(minimum).build()
        show(world.caches.groups, "ml/g", group(minimum).view())
    world.writer.stuck.update(each.view().name for each in pods)
    return world


def longest(
    of_world: Callable[[], World], happens: Callable[[World], None] | None = None
) -> tuple[int, int, int]:
    """The most calls in one round after lifts are decided, and how many hold quota before and after they are given up."""

    async def lifting(loop: CountedLoop) -> tuple[int, int, int]:
        world = of_world()
        async with world.running():
            await asyncio.sleep(1)
            held = world.used()
            loop.longest = 0
            if happens is not None:
                happens(world)
                await asyncio.sleep(0.2)
            else:
                await asyncio.sleep(1.3 * PATIENCE_S)
            return loop.longest, held, world.used()

    return run(lifting)


@pytest.mark.parametrize(
    "of_world",
    [
        lambda: hanging([pod(f"p{number}") for number in range(COUNT)]),
        lambda: hanging(members(), minimum=1),
        lambda: hanging(members(), minimum=COUNT),
    ],
    ids=["single pods", "members of a PodGroup one by one", "a gang"],
)
def test_lifts_that_hang_are_given_up_in_slices(of_world: Callable[[], World]) -> None:
    calls, before, after = longest(of_world)
    assert (before, after < 20) == (COUNT, True), "all but those that are tried give their quota back"
    assert calls < IN_ONE_GO


def test_a_raised_minimum_takes_the_lifts_of_single_members_back_in_slices() -> None:
    """Whoever may write a PodGroup raises it as often as he likes."""
    calls, before, after = longest(
        lambda: hanging(members(), minimum=1),
        lambda world: show(world.caches.groups, "ml/g", group(COUNT + 1).view()),
    )
    assert (before, after < 20) == (COUNT, True)
    assert calls < IN_ONE_GO


def test_the_phase_of_a_group_costs_nothing_however_many_lifts_of_it_wait() -> None:
    """Volcano changes it twice for each PodGroup that starts."""
    calls, before, after = longest(
        lambda: hanging(members(), minimum=1),
        lambda world: show(world.caches.groups, "ml/g", group(1).phase("Running").view()),
    )
    assert (before, after) == (COUNT, COUNT)
    assert calls < COUNT, "not even a call for each of them"
