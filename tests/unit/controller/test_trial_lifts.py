"""Pods whose lift was refused, and others of their namespace, are asked about before they are decided on: without quota meanwhile."""

import asyncio
from itertools import count, pairwise

import pytest

from controller.flight import WRITE_TIMEOUT_S
from controller.lift_requests import PER_NAMESPACE
from controller.refused_lifts import FIRST_S, MAX_S
from core import reasons
from kube import errors
from tests.unit.controller.cluster import show
from tests.unit.controller.lift_world import BROKEN, CHANGED, CUT, FORBIDDEN, SLOW_DOWN, TESTED, World, pod
from tests.unit.controller.trial_world import AT_ONCE_S, FIRST_WAIT_S, MOMENT_S, broken_world, waits_s

pytestmark = pytest.mark.looptime

UNAUTHORIZED = errors.Unauthorized(401, "Unauthorized", "who are you", None, None)


@pytest.mark.parametrize("fifo", [False, True], ids=["traverse", "fifo"])
@pytest.mark.parametrize(("count", "quota"), [(16, 1), (16, 10), (200, 1), (200, 10)])
async def test_pods_behind_a_broken_webhook_keep_the_quota_that_they_share_from_nobody(
    count: int, quota: int, *, fifo: bool
) -> None:
    """They are older, and more than the quota: when the last had tried in vain the first were tried again, and so for ever."""
    world = broken_world(count, quota, fifo=fifo)
    async with world.running():
        await waits_s(world, "good", FIRST_WAIT_S + 1)
        for number in range(20):
            assert await waits_s(world, f"good{number}", 60) < MOMENT_S
            await asyncio.sleep(20)
        assert len({*world.asked(), *world.names()} - {"good"}) >= count, "each of them is tried all the same"


@pytest.mark.parametrize("quota", [1, 10])
@pytest.mark.parametrize("count", [16, 200])
@pytest.mark.parametrize("takes_s", [0.2, 0.45, 0.6, WRITE_TIMEOUT_S])
async def test_however_long_the_answers_take_that_refuse_them(count: int, quota: int, takes_s: float) -> None:
    """Nothing is held while they are waited for, so not as many pods as fill the time of their rest keep the quota."""
    world = broken_world(count, quota, takes_s=takes_s)
    async with world.running():
        await waits_s(world, "good", 3 * FIRST_WAIT_S)
        for number in range(60):
            assert await waits_s(world, f"good{number}", 60) < MOMENT_S
            await asyncio.sleep(10)


async def test_however_many_namespaces_hang() -> None:
    """As where a webhook for all of them does. The first lift of each has its time, from then on all are asked about."""
    bad = [pod(f"bad{n}", 1, namespace=f"broken{n % 12}") for n in range(120)]
    world = World(*bad, quota=1)
    world.writer.answer_to = lambda name: BROKEN if name.startswith("bad") else None
    world.writer.latency_s = lambda name: WRITE_TIMEOUT_S if name.startswith("bad") else 0.001
    async with world.running():
        await asyncio.sleep(12 * 2 * FIRST_WAIT_S)
        for number in range(60):
            assert await waits_s(world, f"good{number}", 60) < MOMENT_S
            await asyncio.sleep(10)


@pytest.mark.parametrize(
    "answer", [SLOW_DOWN, UNAUTHORIZED, CHANGED, TESTED], ids=["429", "401", "409", "422"]
)
async def test_whatever_status_the_webhook_refuses_them_with(answer: errors.KubeError) -> None:
    """It is passed on as it is, with the time after which to ask again."""
    world = broken_world(40, 1)
    async with world.running():
        await waits_s(world, "good", FIRST_WAIT_S + 1)
        world.writer.answer_to = lambda name: answer if name.startswith("bad") else None
        for number in range(60):
            assert await waits_s(world, f"good{number}", 60) < AT_ONCE_S + MOMENT_S
            await asyncio.sleep(10)
        last = [trial.at for trial in world.writer.trials if trial.name == "bad0"]
        assert len(last) < 12, "nor is the server asked again and again"


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
            world.comes(pod(f"new{number}", 3, namespace="broken"))
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
        assert write.at - trial.at < AT_ONCE_S


async def test_others_of_the_namespace_are_asked_about_until_one_of_it_is_stored() -> None:
    world = World(pod("a", 1), quota=1)
    world.writer.answer_to = lambda name: BROKEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.comes(pod("b", 2))
        await asyncio.sleep(1)
        assert (world.names()[-1], world.asked()) == ("b", ["b"])
        world.shows_queue(2)
        world.comes(pod("c", 3))
        await asyncio.sleep(1)
        assert (world.names()[-1], world.asked()) == ("c", ["b"])


async def test_a_pod_that_is_refused_although_it_would_be_taken_in_is_asked_about_again() -> None:
    world = World(pod("a", 1))
    world.writer.answers.extend([FORBIDDEN, None, FORBIDDEN])
    async with world.running():
        await asyncio.sleep(FIRST_S + 2 * FIRST_S + 1)
        assert (world.asked(), world.names()) == (["a"] * 2, ["a"] * 3)


async def test_what_was_answered_about_others_does_not_hold_any_more_once_a_lift_is_given_up_again() -> None:
    """They would hold their quota for as long as that one has, one after the other."""
    world = World(pod("a", 1), quota=1)
    world.writer.answer_to = lambda name: BROKEN if name == "a" else None
    world.writer.latency_s = lambda name: 0.5 if name == "b" else 0.001
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.comes(pod("b", 2))
        await asyncio.sleep(0.1)
        world.comes(pod("z", 3, namespace="fine"))
        await asyncio.sleep(1)
        assert world.asked() == ["b"]
        assert world.names()[-1] == "z"
        world.writer.answers.append(None)
        await asyncio.sleep(FIRST_S)
        assert world.asked() == ["b", "a"]
        show(world.caches.pods, "fine/z", None)
        await asyncio.sleep(FIRST_WAIT_S + 2)
        assert world.asked() == ["b", "a", "b"]
        assert world.names()[-1] == "b"


async def test_those_who_wait_to_be_asked_about_need_not_be_once_one_of_the_namespace_is_stored() -> None:
    """Nor do those wait who were about to be written while others are asked about."""
    world = World(pod("a", 1), quota=100)
    world.writer.answer_to = lambda name: BROKEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.latency_s = lambda name: 0.001 if name == "b0" else 2.0
        for number in range(60):
            world.comes(pod(f"b{number}", 2))
        await asyncio.sleep(2.5)
        assert len(set(world.asked()) - {"a"}) <= PER_NAMESPACE + 1
        await asyncio.sleep(60)
        assert {f"b{number}" for number in range(60)} <= set(world.names())


async def test_who_is_denied_at_once_costs_others_of_its_namespace_no_question() -> None:
    """It has held its quota for no longer than a lift does that is stored."""
    world = World(pod("a", 1), pod("b", 2), quota=1)
    world.writer.answer_to = lambda name: FORBIDDEN if name == "a" else None
    async with world.running():
        await asyncio.sleep(2)
        assert (world.names(), world.asked()) == (["a", "b"], [])


async def test_a_pod_that_hangs_keeps_no_other_of_its_namespace_waiting_for_longer_than_its_answer() -> None:
    """A webhook may be called for some of them alone: two hundred of them hang, and one would be taken in."""
    world = broken_world(200, 10, takes_s=WRITE_TIMEOUT_S)
    async with world.running():
        await asyncio.sleep(40 * MAX_S)
        for number in range(10):
            world.comes(pod(f"healthy{number}", 3, namespace="broken"))
            await asyncio.sleep(2 * WRITE_TIMEOUT_S)
            assert f"healthy{number}" in world.names()
            await asyncio.sleep(60)


async def test_where_dry_runs_are_not_possible_who_was_refused_is_written() -> None:
    """The API server refuses a dry run that would call a webhook with side effects, whatever its failurePolicy."""
    world = broken_world(5, 2)
    unsupported = errors.ApiError(
        400, "BadRequest", 'admission webhook "x.example" does not support dry run', None, None
    )
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.answer_to = lambda _name: None
        world.writer.trial_answer = lambda _name: unsupported
        world.shows_queue(100)
        before = len(world.names())
        await asyncio.sleep(FIRST_WAIT_S + 1)
        assert sorted(world.names()[before:]) == [f"bad{number}" for number in range(5)]


async def test_where_dry_runs_alone_are_denied_all_are_written_when_one_was_stored_against_the_answer() -> (
    None
):
    world = broken_world(20, 100)
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.answer_to = lambda _name: None
        world.writer.trial_answer = lambda _name: FORBIDDEN
        before = len(world.names())
        await asyncio.sleep(5 * MAX_S)
        assert sorted(world.names()[before:]) == sorted(f"bad{number}" for number in range(20))


async def test_where_all_is_denied_one_of_a_namespace_is_written_in_half_a_minute() -> None:
    world = broken_world(20, 100)
    async with world.running():
        await asyncio.sleep(FIRST_WAIT_S + 1)
        world.writer.answer_to = lambda _name: FORBIDDEN
        before = len(world.names())
        await asyncio.sleep(20 * MAX_S)
        after = world.writer.writes[before:]
        assert len(after) > 5
        assert all(later.at - each.at > FIRST_S - 1 for each, later in pairwise(after))


async def test_what_refuses_a_pod_by_now_is_what_it_is_told() -> None:
    world = World(pod("a", 1))
    world.writer.answer_to = lambda _name: FORBIDDEN
    async with world.running():
        await asyncio.sleep(FIRST_S - 1)
        assert "no rights" in world.announcements.holds["uid-ml-a"].why.message
        world.writer.answer_to = lambda _name: BROKEN
        await asyncio.sleep(2)
        assert "failed calling webhook" in world.announcements.holds["uid-ml-a"].why.message


def refused_by(port: int) -> errors.KubeError:
    text = f'failed calling webhook "x.example": read tcp 10.0.0.1:{port}: connection reset by peer'
    return errors.ServerError(500, "InternalError", text, None, None)


async def test_a_question_that_is_answered_as_before_begins_no_pass() -> None:
    """A pass looks at each pod that is refused: thousands of them would keep it busy for ever. A port or a time is no news."""
    world, port = broken_world(100, 1), count(30_000)
    async with world.running():
        await asyncio.sleep(4 * MAX_S)
        world.writer.answer_to = lambda name: refused_by(next(port)) if name.startswith("bad") else None
        await asyncio.sleep(MAX_S)
        before, passes = len(world.asked()), world.passes()
        await asyncio.sleep(MAX_S)
        assert len(world.asked()) - before >= 100
        assert world.passes() - passes <= 1


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
        world.comes(pod("b", 2))
        await asyncio.sleep(0.1)
        assert world.names() == ["a", "b"]
        held = [event for event in world.recorder.emitted if event[:2] == ("Pod a", reasons.LIFT_REFUSED)]
        assert held
