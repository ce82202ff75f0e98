"""Pods whose lift was refused, and others of their namespace, are asked about before they are written: they hold no quota meanwhile."""

import asyncio
from collections.abc import Callable

import pytest

from controller.flight import WRITE_TIMEOUT_S
from controller.refused_lifts import FIRST_S, MAX_S
from core import reasons
from kube import errors
from tests.builders import a_group
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import BROKEN, CHANGED, CUT, FORBIDDEN, SLOW_DOWN, World, lifted, pod

pytestmark = pytest.mark.looptime

FIRST_WAIT_S = 32.0
"""Until nobody gives the first tries a chance any more, of which it is certain then that none was stored."""
MOMENT_S = 0.1


def in_turn_s(count: int, quota: int) -> float:
    """How long it takes at the most to ask about as many pods: in each pass about as many as there is quota for."""
    return 0.015 * count / quota + MOMENT_S


def broken_world(count: int, quota: int, *, fifo: bool = False, takes_s: float = 0.001) -> World:
    """As many older pods in a namespace whose lifts fail, each after so many seconds; there is one queue for all."""
    world = World(*(pod(f"bad{n}", 1, namespace="broken") for n in range(count)), quota=quota, fifo=fifo)
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
    world.stores(fresh)
    world.shows(fresh)
    await until(lambda: name in world.names(), at_most_s)
    show(world.caches.pods, fresh.view().key, None)
    return asyncio.get_running_loop().time() - began


@pytest.mark.parametrize("fifo", [False, True], ids=["traverse", "fifo"])
@pytest.mark.parametrize(("count", "quota"), [(16, 1), (16, 10), (200, 1), (200, 10)])
async def test_pods_behind_a_broken_webhook_keep_the_quota_that_they_share_from_nobody(
    count: int, quota: int, *, fifo: bool
) -> None:
    """They are older, and more than the quota: when the last had tried in vain the first were tried again, and so for ever."""
    world, in_turn = broken_world(count, quota, fifo=fifo), in_turn_s(count, quota)
    async with world.running():
        await waits_s(world, "good", FIRST_WAIT_S + 1 + in_turn)
        for number in range(20):
            assert await waits_s(world, f"good{number}", 60) < in_turn
            await asyncio.sleep(20)
        assert len({*world.asked(), *world.names()} - {"good"}) >= count, "each of them is tried all the same"


@pytest.mark.parametrize("count", [16, 200])
async def test_pods_behind_a_webhook_that_hangs_keep_shared_quota_for_one_answer_in_half_a_minute(
    count: int,
) -> None:
    world = broken_world(count, 10, takes_s=WRITE_TIMEOUT_S)
    async with world.running():
        await waits_s(world, "good", 3 * FIRST_WAIT_S)
        waits = []
        for number in range(60):
            waits.append(await waits_s(world, f"good{number}", 60))
            await asyncio.sleep(10)
        in_turn = in_turn_s(count, 10)
        assert max(waits) < WRITE_TIMEOUT_S + 2 * in_turn
        assert sum(each > in_turn for each in waits) <= len(waits) / 3


async def test_once_the_webhook_is_back_all_are_in_within_their_time_and_nobody_is_asked_about_any_more() -> (
    None
):
    world = broken_world(40, 10)
    async with world.running():
        await asyncio.sleep(700)
        world.shows_queue(100)
        world.writer.answer_to = lambda _name: None
        world.writer.latency_s = lambda _name: 0.001
        await asyncio.sleep(MAX_S + 10)
        assert len({name for name in world.names() if name.startswith("bad")}) == 40
        before = len(world.asked())
        for number in range(5):
            fresh = pod(f"new{number}", 3, namespace="broken")
            world.stores(fresh)
            world.shows(fresh)
        await asyncio.sleep(1)
        assert len(world.asked()) == before
        assert {f"new{number}" for number in range(5)} <= set(world.names())


async def test_a_pod_that_would_be_taken_in_is_written_at_once() -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(FORBIDDEN)
    async with world.running():
        await asyncio.sleep(FIRST_S + 1)
        assert (world.asked(), world.names()) == (["a"], ["a", "a"])
        (trial,), write = world.writer.trials, world.writer.writes[-1]
        assert trial.body == write.body
        assert write.at - trial.at < 0.01


async def test_others_of_the_namespace_are_asked_about_until_one_of_it_is_stored() -> None:
    world = World(pod("a", 1), pod("b", 2), pod("c", 3), quota=1)
    world.writer.answer_to = lambda name: FORBIDDEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(2)
        assert (world.names(), world.asked()) == (["a", "b"], ["b"])
        world.shows_queue(2)
        await asyncio.sleep(2)
        assert (world.names(), world.asked()) == (["a", "b", "c"], ["b"])


async def test_a_webhook_that_puts_the_gate_back_is_seen_without_anything_being_stored() -> None:
    world = World(pod("a", 1))
    world.writer.answered["a"] = pod("a", 1, version="2").build()
    async with world.running():
        await asyncio.sleep(FIRST_S + 2)
        assert (world.names(), world.asked(), world.used()) == (["a"], ["a"], 0)
        held = [event for event in world.recorder.emitted if event[:2] == ("Pod a", reasons.LIFT_REFUSED)]
        assert "the gate is still there" in str(held[-1])


async def test_a_pod_that_has_changed_when_it_is_asked_about_is_decided_anew_by_what_is_stored() -> None:
    world = World(pod("a", 1))
    world.writer.answers.extend([FORBIDDEN, CHANGED])
    async with world.running():
        await asyncio.sleep(2)
        world.stores(pod("a", 1, version="2"))
        await asyncio.sleep(FIRST_S)
        assert world.asked() == ["a", "a"]
        assert "'value': '2'" in str(world.writer.writes[-1].body)
        assert world.names() == ["a", "a"]


async def test_a_question_that_is_throttled_is_put_again_when_the_server_wants_it() -> None:
    world = World(pod("a", 1))
    world.writer.answers.extend([FORBIDDEN, SLOW_DOWN])
    async with world.running():
        await asyncio.sleep(FIRST_S + 10)
        first, second = world.writer.trials
        assert second.at - first.at == pytest.approx(7, abs=0.1)
        assert world.names() == ["a", "a"]


async def test_a_server_that_wants_to_be_left_alone_for_longer_than_a_pod_rests_is_left_alone() -> None:
    world = World(pod("a", 1))
    busy = errors.ServerError(503, "ServiceUnavailable", "later", None, 200.0)
    world.writer.answers.extend([FORBIDDEN, busy])
    async with world.running():
        await asyncio.sleep(FIRST_S + 250)
        first, second = world.writer.trials
        assert second.at - first.at == pytest.approx(200, abs=0.1)
        assert world.names() == ["a", "a"]


async def test_nothing_is_written_for_a_pod_that_has_gone_while_it_was_asked_about() -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(FORBIDDEN)
    async with world.running():
        await asyncio.sleep(2)
        world.writer.latency_s = lambda _name: 1.0
        await asyncio.sleep(FIRST_S - 1.5)
        assert world.asked() == ["a"]
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(2)
        assert (world.names(), world.used()) == (["a"], 0)


async def test_a_gang_of_which_others_are_in_is_not_left_by_half_for_a_question_that_fails() -> None:
    """The first is let in between the question about the second and its answer, a failure of the moment."""
    world = World(pod("x", 1), quota=2)
    world.writer.answers.append(FORBIDDEN)
    async with world.running():
        await asyncio.sleep(1)
        show(world.caches.groups, "ml/g", a_group("g").min_member(2).in_queue("q").view())
        world.writer.answer_to = lambda name: CUT if name == "b" and len(world.asked()) < 3 else None
        world.writer.latency_s = lambda name: 0.3 if name == "b" else 0.001
        for name in ("a", "b"):
            member = pod(name, 2).in_group("g")
            world.stores(member)
            world.shows(member)
        await asyncio.sleep(0.2)
        world.shows(lifted("a").in_group("g"))
        await asyncio.sleep(5)
        assert "b" in world.names()
        assert world.used() == 2


@pytest.mark.parametrize(
    "answer", [BROKEN, CUT, FORBIDDEN, errors.ApiError(408, "Timeout", "slow", None, None)]
)
async def test_whoever_would_be_refused_gives_its_quota_to_the_next_at_once(answer: errors.KubeError) -> None:
    world = World(pod("a", 1), quota=1)
    world.writer.answers.append(FORBIDDEN)
    async with world.running():
        await asyncio.sleep(2)
        world.writer.answer_to = lambda name: answer if name == "a" else None
        await asyncio.sleep(FIRST_S - 1)
        assert world.asked() == ["a"]
        fresh = pod("b", 2)
        world.stores(fresh)
        world.shows(fresh)
        await asyncio.sleep(0.1)
        assert world.names() == ["a", "b"]
        held = [event for event in world.recorder.emitted if event[:2] == ("Pod a", reasons.LIFT_REFUSED)]
        assert held
