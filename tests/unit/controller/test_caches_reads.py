"""Pods that the caches have by a read alone: they go when the watch has come past the read, or with the time of leading."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller.caches import Caches
from core.objects import Pod
from core.objects import pod as pods
from core.settings import Settings
from kube.resources import PODS, QUEUES
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.fakes.apiserver import background
from tests.fakes.livesource import LiveSource
from tests.unit.controller.cluster import caches as at_hand
from tests.unit.controller.cluster import show
from tests.unit.controller.test_binding import World, share, stored

pytestmark = pytest.mark.looptime


def bound(uid: str = "one") -> PodBuilder:
    return a_pod("p").uid(uid).gpu(1).card("A").in_queue("q").bound_to("n")


def booked(of: Caches) -> list[str]:
    return [each.pod.uid for each in of.ledger.entries()]


@asynccontextmanager
async def following(source: LiveSource) -> AsyncIterator[Caches]:
    """Caches that have listed all that there is, which changes as `source` does."""
    of = Caches(source, Settings())
    async with background(of.run()):
        await of.wait_synced()
        await asyncio.sleep(1)
        yield of


async def read_in(of: Caches, source: LiveSource, expected: PodBuilder) -> Pod | None:
    async def read(pod: Pod) -> Pod | None:
        return pods.project(await source.get(PODS, pod.name, pod.namespace))

    return await of.look_up(expected.view(), read)


async def test_one_that_went_while_the_watch_was_away_is_gone_after_the_list() -> None:
    source = LiveSource()
    source.put(QUEUES, a_queue("q").build())
    async with following(source) as of:
        source.cut_off()
        source.put(PODS, bound().build())
        await read_in(of, source, bound())
        assert booked(of) == ["one"]
        source.remove(PODS, "p", "ml")
        of.ledger.wakeups.take_figures()
        await of.pods.refresh()
        assert booked(of) == []
        assert of.ledger.wakeups.take_figures() == {"q"}, "what it held is free"


async def test_one_that_came_and_went_while_it_was_read_is_gone_once_the_watch_is_past_it() -> None:
    source = LiveSource()
    async with following(source) as of:

        async def read(pod: Pod) -> Pod | None:
            source.put(PODS, bound().build())
            found = pods.project(await source.get(PODS, pod.name, pod.namespace))
            source.remove(PODS, "p", "ml")
            await asyncio.sleep(1)
            return found

        await of.look_up(bound().view(), read)
        assert booked(of) == ["one"]
        await asyncio.sleep(600)
        assert booked(of) == []


async def test_one_that_the_watch_shows_in_the_end_stays() -> None:
    source = LiveSource()
    async with following(source) as of:
        source.behind = True
        source.put(PODS, bound().build())
        await read_in(of, source, bound())
        await asyncio.sleep(600)
        assert booked(of) == ["one"]
        source.behind = False
        await of.pods.refresh()
        of.give_back()
        assert booked(of) == ["one"]
        source.remove(PODS, "p", "ml")
        await asyncio.sleep(600)
        assert booked(of) == []


async def test_one_made_again_under_the_name_of_what_the_watch_still_shows_is_gone_as_well() -> None:
    source = LiveSource()
    source.put(PODS, bound().build())
    async with following(source) as of:
        source.cut_off()
        source.remove(PODS, "p", "ml")
        source.put(PODS, bound("two").build())
        await read_in(of, source, bound("two"))
        assert sorted(booked(of)) == ["one", "two"]
        source.remove(PODS, "p", "ml")
        await of.pods.refresh()
        assert booked(of) == []


async def test_one_that_a_later_read_does_not_find_is_gone_and_nothing_is_kept_of_it() -> None:
    of = at_hand([a_node("n").view()])
    answers: list[Pod | None] = [bound().view(), None]

    async def read(_: Pod) -> Pod | None:
        return answers.pop(0)

    await of.look_up(bound().view(), read)
    await of.look_up(bound().view(), read)
    assert (booked(of), of._readings._read, of._readings._gone, of._unseen._read) == ([], {}, set(), {})


async def bound_unseen() -> tuple[World, PodBuilder]:
    """A leader that has found a bind stored by a read, for the watch is away; and the pod."""
    world = World()
    world.reader.stored["ml/p"] = share("p").build()
    pod = stored(share("p"), await world.bind("p"))
    world.reader.stored["ml/p"] = pod.build()
    async with background(world.hook.run()):
        await asyncio.sleep(45)
    return world, pod


async def test_a_bind_that_was_found_stored_outlives_no_leader() -> None:
    """The watch is away; the pod comes, is bound and goes, and the leader changes meanwhile."""
    world, _ = await bound_unseen()
    assert len(world.caches.ledger.pods_on("m1")) == 1
    world.hook.stop()
    world.caches.give_back()
    # The list when the watch is back has nothing of it, so nobody is told that it has gone.
    assert world.caches.ledger.pods_on("m1") == []


async def test_one_that_was_shown_after_all_outlives_the_leader() -> None:
    world, pod = await bound_unseen()
    show(world.caches.pods, "ml/p", pod.view())
    world.hook.stop()
    world.caches.give_back()
    assert len(world.caches.ledger.pods_on("m1")) == 1
