"""The loop that lifts: one patch per lift, quota held while the answer is open, no hot loop after a refusal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from core import reasons
from kube import errors
from kube.lease import Term
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime


def pod(name: str, second: int = 0) -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_queue("q").gated().created(f"2024-01-01T00:00:{second:02}Z")
    return built.put("metadata", "resourceVersion", value="1")


class World:
    def __init__(self, *pods: PodBuilder, quota: int = 1) -> None:
        self.caches: Caches = caches([a_node("n").card("A", 8).view()], [each.view() for each in pods])
        show(self.caches.queues, "q", a_queue("q").cards({"A": quota}).view())
        self.writer, self.recorder = Writer(), Recorder()
        metrics = Metrics(CollectorRegistry())
        self.announcements = Announcements(self.recorder)
        self.lifter = Lifter(self.writer, self.caches, self.announcements, metrics)

    @asynccontextmanager
    async def running(self, led: Term | None = None) -> AsyncIterator[None]:
        task = asyncio.create_task(self.lifter.run(led or term()))
        async with background(self.announcements.run()):
            await asyncio.sleep(0.1)
            yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def shows(self, built: PodBuilder) -> None:
        show(self.caches.pods, built.view().key, built.view())

    def names(self) -> list[str]:
        return [write.name for write in self.writer.writes]


async def test_each_lift_is_one_patch_under_our_name_and_the_rest_is_told_why() -> None:
    world = World(pod("a", 1), pod("b", 2), pod("c", 3), quota=2)
    async with world.running():
        assert world.names() == ["a", "b"]
        assert {write.field_manager for write in world.writer.writes} == {"cardquota"}
        await asyncio.sleep(1)
        assert [event[:2] for event in world.recorder.emitted] == [
            ("Pod c", reasons.INSUFFICIENT_SCALAR_QUOTA)
        ]


async def test_the_same_reason_is_said_once_and_a_new_one_again() -> None:
    world = World(pod("a", 1), pod("b", 2))
    async with world.running():
        show(world.caches.queues, "q", a_queue("q").cards({"A": 1}).priority(3).view())
        show(world.caches.queues, "q", a_queue("q").cards({"A": 1}).fifo().view())
        await asyncio.sleep(2)
        assert len(world.recorder.emitted) == 1
        show(world.caches.queues, "q", a_queue("q").cards("{").view())
        await asyncio.sleep(2)
        assert [event[1] for event in world.recorder.emitted] == [
            reasons.INSUFFICIENT_SCALAR_QUOTA,
            reasons.CARD_QUOTA_MALFORMED,
        ]


async def test_quota_that_comes_back_lifts_the_next_one() -> None:
    world = World(pod("a", 1), pod("b", 2))
    async with world.running():
        world.shows(a_pod("a").gpu(1).card("A").in_queue("q").bound_to("n").terminating())
        await asyncio.sleep(1)
        assert world.names() == ["a", "b"]


@pytest.mark.parametrize(
    "lost",
    [
        errors.ConnectionFailed("cut"),
        errors.ServerError(500, "InternalError", "etcd", None, None),
        errors.Throttled(429, "TooManyRequests", "slow down", None, 1.0),
    ],
)
async def test_a_lost_answer_repeats_the_same_patch_and_lets_nobody_else_in(lost: errors.KubeError) -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.extend([lost, lost])
    async with world.running():
        await asyncio.sleep(10)
        assert world.names() == ["a", "a", "a"]
        assert len({str(write.body) for write in world.writer.writes}) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        errors.Invalid(422, "Invalid", "a test failed", None, None),
        errors.Conflict(409, "Conflict", "changed", None, None),
        errors.NotFound(404, "NotFound", "gone", None, None),
    ],
)
async def test_a_refused_patch_waits_for_the_watch_and_is_decided_anew(refusal: errors.KubeError) -> None:
    world = World(pod("a", 1))
    world.writer.answers.append(refusal)
    async with world.running():
        assert world.names() == ["a"]
        world.shows(pod("a", 1).put("metadata", "resourceVersion", value="2"))
        await asyncio.sleep(0.1)
        assert world.names() == ["a", "a"]
        assert "2" in str(world.writer.writes[1].body[1])


async def test_what_a_policy_forbids_is_not_tried_in_a_hot_loop() -> None:
    world = World(pod("a", 1))
    world.writer.answers.extend([errors.Forbidden(403, "Forbidden", "no rights", None, None)] * 100)
    async with world.running():
        await asyncio.sleep(100)
        assert 2 <= len(world.writer.writes) <= 5


async def test_a_pod_gone_while_its_lift_is_refused_leaves_nothing_behind() -> None:
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.append(errors.NotFound(404, "NotFound", "gone", None, None))
    async with world.running():
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(1)
        assert world.names() == ["a", "b"]


async def test_a_term_that_is_over_writes_no_more() -> None:
    world, over = World(pod("a", 1)), term()
    over.end()
    async with world.running(over):
        assert world.writer.writes == []


async def test_the_end_of_leading_takes_back_what_was_assumed() -> None:
    world = World(pod("a", 1))
    async with world.running():
        assert world.caches.ledger.used("q", "A") == 1000
    assert world.caches.ledger.used("q", "A") == 0


async def test_a_lift_that_is_refused_after_its_bind_was_granted_takes_nothing_back_from_the_bind() -> None:
    """The answer to the lift was lost, the scheduler saw it stored, and the repetition of the patch is refused."""
    world = World(pod("a", 1), pod("b", 2))
    world.writer.answers.extend(
        [errors.ConnectionFailed("lost"), errors.Invalid(422, "Invalid", "a test failed", None, None)]
    )
    async with world.running():
        lifted = world.caches.ledger.pod("uid-ml-a")
        assert lifted is not None
        world.caches.ledger.assume(replace(lifted, node_name="n"))
        await asyncio.sleep(5)
        assert world.names() == ["a", "a"]
        assert world.caches.ledger.accounts["q"].allocated == {"A": 1000}
