"""Lifts that the API server refuses: what has changed is decided anew, what cannot be lifted gives its quota back."""

import asyncio

import pytest

from controller.flight import FAILED_S
from core import reasons
from kube import errors
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import (
    BROKEN,
    CHANGED,
    FORBIDDEN,
    GONE,
    SLOW_DOWN,
    TESTED,
    World,
    lifted,
    pod,
)

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("refusal", [CHANGED, TESTED])
async def test_a_pod_that_has_changed_is_decided_anew_by_what_was_read_before_the_watch_shows_it(
    refusal: errors.KubeError,
) -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(refusal)
    world.stores(pod("a", 1, version="2"))
    async with world.running():
        await asyncio.sleep(0.2)
        assert world.names() == ["a", "a"]
        assert "'value': '2'" in str(world.writer.writes[1].body)


async def test_a_pod_that_is_gone_gives_its_quota_to_the_next_before_the_watch_shows_it() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(GONE)
    del world.writer.stored["ml/a"]
    async with world.running():
        await asyncio.sleep(0.2)
        assert world.names() == ["a", "b"]
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(0.2)
        assert (world.names(), world.used()) == (["a", "b"], 1)


async def test_another_pod_of_the_name_is_not_taken_for_the_one_that_was_lifted() -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(TESTED)
    world.stores(pod("a", 5, version="9").uid("another"))
    async with world.running():
        await asyncio.sleep(0.2)
        assert (world.names(), world.used()) == (["a"], 0)
        show(world.caches.pods, "ml/a", None)
        world.shows(pod("a", 5, version="9").uid("another"))
        await asyncio.sleep(0.2)
        assert world.names() == ["a", "a"]
        assert "another" in str(world.writer.writes[1].body)
        assert world.used() == 1


async def test_a_pod_made_anew_is_lifted_whatever_becomes_of_the_request_for_the_former_one() -> None:
    """The answer about the former pod comes when the lift of the new one is under way, and then has to be repeated."""
    world = World(pod("a", 1))
    world.writer.latency_s = lambda _name: 2.0
    world.writer.answers.extend([GONE, SLOW_DOWN])
    async with world.running():
        anew = pod("a", 5, version="9").uid("another")
        show(world.caches.pods, "ml/a", None)
        world.stores(anew)
        world.shows(anew)
        await asyncio.sleep(20)
        assert world.names() == ["a", "a", "a"]
        assert ["another" in str(write.body) for write in world.writer.writes] == [False, True, True]


async def test_what_a_policy_forbids_gives_its_quota_back_is_told_and_is_tried_again_with_patience() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: FORBIDDEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(2)
        assert world.names() == ["a", "b"], "nobody waits behind a pod that cannot be lifted"
        assert ("Pod a", reasons.LIFT_REFUSED) in [event[:2] for event in world.recorder.emitted]
        world.shows_queue(2)
        await asyncio.sleep(100)
        assert 2 <= world.names().count("a") <= 4


async def test_a_pod_whose_webhook_is_down_gives_its_quota_back_only_when_no_try_can_be_stored_any_more() -> (
    None
):
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: BROKEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(40)
        given = next(write.at for write in world.writer.writes if write.name == "b")
        tries = [write.at for write in world.writer.writes if write.name == "a" and write.at < given]
        assert given - tries[-1] >= FAILED_S
        assert len(tries) == 6


async def test_a_refused_pod_that_is_lifted_by_somebody_else_is_forgotten() -> None:
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: FORBIDDEN
    async with world.running():
        await asyncio.sleep(1)
        world.shows(lifted("a"))
        await asyncio.sleep(200)
        assert world.names() == ["a"]


@pytest.mark.parametrize("gone", ["while it is under way", "while it is put off"])
async def test_nothing_is_remembered_of_a_refused_lift_whose_pod_is_gone(gone: str) -> None:
    """The server asks to be left alone for longer than a lift is given, before or after the watch has shown that the pod is gone."""
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: errors.Throttled(429, "TooManyRequests", "later", None, 60.0)
    world.writer.latency_s = lambda _name: 2.0
    async with world.running():
        await asyncio.sleep(0.5 if gone == "while it is under way" else 10)
        del world.writer.stored["ml/a"]
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(600)
        assert world.names() == ["a"]
        assert not world.lifter._writer._refused
        planner = world.lifter._writer._planner
        assert planner is not None
        assert not planner._judge.refused


@pytest.mark.parametrize(
    "answer", [SLOW_DOWN, errors.Throttled(429, "TooManyRequests", "policy", None, 3600.0)]
)
async def test_a_pod_that_is_put_off_without_end_gives_its_quota_back(answer: errors.KubeError) -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answer_to = lambda name: answer if name == "a" else None
    async with world.running():
        await asyncio.sleep(90)
        assert "b" in world.names()


async def test_quota_is_not_held_by_those_who_wait_behind_hanging_lifts() -> None:
    """Two hundred pods in one namespace, each of whose lifts hangs for 4 s: a pod elsewhere has its quota in minutes."""
    world = World(*(pod(f"bad{n:03}", 1, namespace="broken") for n in range(200)), pod("good", 2), quota=200)
    world.writer.answer_to = lambda name: BROKEN if name.startswith("bad") else None
    world.writer.latency_s = lambda name: 4.0 if name.startswith("bad") else 0.001
    async with world.running():
        await asyncio.sleep(60)
        assert "good" in world.names()
