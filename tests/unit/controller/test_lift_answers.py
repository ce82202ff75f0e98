"""What the API server answers to a lift, or is read of it, beside what the watch shows: the newest counts, whenever it comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import CHANGED, CUT, World, lifted, pod

pytestmark = pytest.mark.looptime


def answers_late(world: World, seconds: float) -> None:
    """What is read is what was stored so long before the answer comes."""
    read = world.writer.get

    async def late(*args: Any, **more: Any) -> Any:
        answer = await read(*args, **more)
        await asyncio.sleep(seconds)
        return answer

    world.writer.get = late  # type: ignore[method-assign]


@asynccontextmanager
async def being_read() -> AsyncIterator[World]:
    """The answer to the lift of `a`, which was stored, is lost; what the API server has of it is on its way."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(CUT)
    answers_late(world, 1.0)
    async with world.running():
        world.stores(lifted("a"))
        await asyncio.sleep(0.5)
        yield world


async def test_an_answer_that_is_older_than_the_watch_brings_no_pod_back() -> None:
    """A pod that was deleted meanwhile held quota for ever."""
    async with being_read() as world:
        world.shows(lifted("a"))
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(10)
        assert world.caches.ledger.observed("uid-ml-a") is None
        assert world.names() == ["a", "b"]


async def test_an_answer_that_is_older_than_the_watch_unbinds_no_pod() -> None:
    async with being_read() as world:
        world.shows(lifted("a", "3").bound_to("n"))
        await asyncio.sleep(10)
        assert world.caches.ledger.accounts["q"].allocated == {"A": 1000}


async def test_a_late_watch_does_not_undo_what_was_read() -> None:
    """The stored lift was taken for none, and its card given to another pod."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.extend([CHANGED, CUT])
    world.stores(pod("a", 1, version="2"))
    world.writer.latency_s = lambda _name: 0.02
    async with world.running():
        world.stores(lifted("a", "3"))
        await asyncio.sleep(2)
        world.stores(pod("c", 0))
        world.shows(pod("c", 0))
        await asyncio.sleep(1)
        world.shows(pod("a", 1, version="2"))
        await asyncio.sleep(5)
        assert "c" not in world.names()
        world.shows(lifted("a", "3"))
        world.shows(lifted("a", "4").terminating())
        await asyncio.sleep(1)
        assert "c" in world.names()


async def test_a_state_from_before_the_read_does_not_void_a_lift_that_may_be_stored() -> None:
    world = World(pod("a", 1))
    world.writer.answers.extend([CHANGED, CUT])
    world.stores(pod("a", 1, version="3"))
    world.writer.latency_s = lambda _name: 0.02
    async with world.running():
        assert len(world.writer.writes) == 2
        world.stores(lifted("a", "4"))
        world.stores(pod("c", 0))
        world.shows(pod("c", 0))
        world.shows(pod("a", 1, version="2"))
        await asyncio.sleep(5)
        assert "c" not in world.names()


async def test_what_the_answer_shows_is_known_before_the_watch_shows_it() -> None:
    """A scheduler that is faster than our watch binds at once, and the bind finds no gate and reads nothing."""
    world = World(pod("a", 1))
    world.writer.answered["a"] = lifted("a").build()
    async with world.running():
        latest = world.caches.latest("ml/a")
        shown = world.caches.pods.get("ml/a")
        assert latest is not None
        assert shown is not None
        assert (latest.gated, shown.gated) == (False, True)
        assert world.caches.ledger.assumed(latest.uid) is None
        world.shows(lifted("a"))
        assert world.used() == 1


async def test_an_answer_that_comes_after_the_watch_changes_nothing() -> None:
    """The pod may even be bound by then."""
    world = World(pod("a", 1))
    world.writer.answered["a"] = lifted("a").build()
    world.writer.latency_s = lambda _name: 1.0
    async with world.running():
        world.shows(lifted("a", "3").bound_to("n"))
        await asyncio.sleep(2)
        latest = world.caches.latest("ml/a")
        assert latest is not None
        assert latest.bound
        assert [seen.name for seen in world.caches.ledger.pods_on("n")] == ["a"]


async def test_an_answer_that_the_watch_was_faster_with_is_read_and_booked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its version alone: nothing is made of the answer's text, and nobody is woken for it."""
    world = World(pod("a", 1))
    world.writer.answered["a"] = lifted("a").build()
    world.writer.latency_s = lambda _name: 1.0
    made: list[object] = []
    monkeypatch.setattr(world.caches, "project_pod", made.append)
    async with world.running():
        world.shows(lifted("a"))
        await asyncio.sleep(0.5)
        changes = world.caches.ledger.changes
        await asyncio.sleep(2)
        assert (made, world.caches.ledger.changes) == ([], changes)
        latest = world.caches.latest("ml/a")
        assert latest is not None
        assert not latest.gated


@pytest.mark.parametrize("answer", [{}, {"metadata": []}, {"metadata": {"name": "a", "namespace": "ml"}}])
async def test_an_answer_that_is_no_pod_is_left_to_the_watch(answer: dict[str, object]) -> None:
    world = World(pod("a", 1))
    world.writer.answered["a"] = answer
    async with world.running():
        assert world.used() == 1
        latest = world.caches.latest("ml/a")
        assert latest is not None
        assert latest.gated
