"""Pods behind a webhook that refuses their lifts, and how long others wait for theirs."""

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import BROKEN, World, pod

FIRST_WAIT_S = 32.0
"""Until nobody gives the first tries a chance any more, of which it is certain then that none was stored."""
MOMENT_S = 0.1
AT_ONCE_S = 0.05
"""Two passes, and a question between them that takes a millisecond."""


def broken_world(number: int, quota: int, *, fifo: bool = False, takes_s: float = 0.001) -> World:
    """As many older pods in a namespace whose lifts fail, each after so many seconds; there is one queue for all."""
    world = World(*(pod(f"bad{n}", 1, namespace="broken") for n in range(number)), quota=quota, fifo=fifo)
    world.writer.answer_to = lambda name: BROKEN if name.startswith("bad") else None
    world.writer.latency_s = lambda name: takes_s if name.startswith("bad") else 0.001
    return world


async def until(holds: Callable[[], bool], at_most_s: float) -> None:
    """Returns when this is so, looked at each hundredth of a second; fails when it takes too long."""
    for _ in range(round(100 * at_most_s)):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"not within {at_most_s} s")


async def waits_s(world: World, name: str, at_most_s: float) -> float:
    """How long a younger pod elsewhere waits for its lift; it gives its quota back once it is in."""
    began, fresh = asyncio.get_running_loop().time(), pod(name, 2, namespace="fine")
    world.comes(fresh)
    await until(lambda: name in world.names(), at_most_s)
    show(world.caches.pods, fresh.view().key, None)
    return asyncio.get_running_loop().time() - began
