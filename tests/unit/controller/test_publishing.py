"""Queue status: written on change only, and never in a fight at somebody else's pace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.metrics import Metrics
from controller.publishing import Publisher
from core import reasons
from kube import errors
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import QueueBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

QUEUE = a_queue("q").cards({"A": 4})
RUNNING = a_pod("a").gpu(2).card("A").in_queue("q").bound_to("n")


class World:
    def __init__(self, queue: QueueBuilder = QUEUE) -> None:
        self.caches = caches([a_node("n").card("A", 8).view()], [RUNNING.view()])
        self.shows(queue)
        self.writer, self.recorder = Writer(), Recorder()
        metrics = Metrics(CollectorRegistry())
        self.publisher = Publisher(self.writer, self.caches, Announcements(self.recorder), metrics)

    def shows(self, queue: QueueBuilder) -> None:
        show(self.caches.queues, "q", queue.view())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.publisher.run(term()))
        await asyncio.sleep(1)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def patches(self) -> list[object]:
        return [write.body for write in self.writer.writes]


def allocated(**keys: str | None) -> dict[str, object]:
    return {"status": {"allocated": keys}}


async def test_usage_is_written_once_as_a_merge_patch_on_the_status() -> None:
    world = World()
    async with world.running():
        assert world.patches() == [allocated(A="2")]
        (write,) = world.writer.writes
        assert (write.subresource, write.field_manager) == ("status", "cardquota")
        world.shows(QUEUE.allocated({"A": "2"}))
        await asyncio.sleep(100)
        assert len(world.writer.writes) == 1


async def test_a_right_status_is_not_written_and_a_card_that_fell_to_nothing_is_nulled() -> None:
    world = World(QUEUE.allocated({"A": "2"}))
    async with world.running():
        assert world.patches() == []
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(1)
        assert world.patches() == [allocated(A=None)]


async def test_somebody_who_drops_our_keys_every_second_is_not_fought_at_that_pace() -> None:
    world = World()
    async with world.running():
        for _ in range(600):
            written = len(world.writer.writes)
            world.shows(QUEUE.allocated({"A": "2"}))
            world.shows(QUEUE.allocated({"cpu": str(written)}))
            await asyncio.sleep(1)
        assert 5 <= len(world.writer.writes) <= 14


async def test_a_new_usage_is_written_at_once_even_in_a_fight() -> None:
    world = World()
    async with world.running():
        for _ in range(30):
            world.shows(QUEUE)
            await asyncio.sleep(1)
        show(world.caches.pods, "ml/b", RUNNING.uid("b").view())
        await asyncio.sleep(1)
        assert world.patches()[-1] == allocated(A="4")


async def test_a_failed_write_is_repeated_later_without_any_further_event() -> None:
    world = World()
    world.writer.answers.append(errors.ServerError(500, "InternalError", "etcd", None, None))
    async with world.running():
        await asyncio.sleep(10)
        assert world.patches()[:2] == [allocated(A="2"), allocated(A="2")]


async def test_a_queue_that_goes_is_forgotten() -> None:
    world = World()
    async with world.running():
        show(world.caches.queues, "q", None)
        await asyncio.sleep(100)
        assert len(world.writer.writes) == 1


async def test_a_quota_that_cannot_be_read_is_told_on_the_queue_once_until_it_is_mended() -> None:
    world = World(QUEUE.cards("{"))
    async with world.running():
        world.shows(QUEUE.cards("{").priority(1))
        await asyncio.sleep(1)
        assert [event[:2] for event in world.recorder.emitted] == [("Queue q", reasons.CARD_QUOTA_MALFORMED)]
        world.shows(QUEUE)
        await asyncio.sleep(1)
        world.shows(QUEUE.cards("["))
        await asyncio.sleep(1)
        assert len(world.recorder.emitted) == 2


async def test_a_cut_below_what_is_used_is_told_on_the_queue_once_for_each_cut() -> None:
    """Nothing is evicted; that fewer pods are left is no news, the next cut is, and so is the next time."""
    world = World()
    show(world.caches.pods, "ml/b", RUNNING.uid("b").view())
    async with world.running():
        assert world.recorder.emitted == []
        world.shows(QUEUE.cards({"A": 1}))
        await asyncio.sleep(1)
        ((about, reason, note),) = world.recorder.emitted
        assert (about, reason) == ("Queue q", reasons.QUOTA_EXCEEDED)
        assert "<A> used <4000>, but capability is <1000>" in note
        show(world.caches.pods, "ml/b", None)
        await asyncio.sleep(1)
        assert len(world.recorder.emitted) == 1
        world.shows(QUEUE.cards({"A": 0}))
        await asyncio.sleep(1)
        assert len(world.recorder.emitted) == 2
        world.shows(QUEUE)
        await asyncio.sleep(1)
        world.shows(QUEUE.cards({"A": 0}))
        await asyncio.sleep(1)
        assert len(world.recorder.emitted) == 3


async def test_a_running_pod_that_nobody_can_count_is_told_once() -> None:
    world = World()
    async with world.running():
        for version in ("1", "2"):
            lost = a_pod("lost").gpu(1).limit("rdma/hca", 1).card("K80").in_queue("q").bound_to("n")
            view = lost.put("metadata", "resourceVersion", value=version).view()
            show(world.caches.pods, view.key, view)
            await asyncio.sleep(1)
    assert world.recorder.emitted == [
        (
            "Pod lost",
            reasons.GET_TASK_REQUEST_RESOURCE_FAILED,
            "Get request resource failed, Queue <q>, error: no resource name found for card <K80>",
        )
    ]


async def test_devices_are_shown_in_the_queue_and_above_and_volcano_s_own_keys_are_left_to_it() -> None:
    world = World(QUEUE.child_of("org"))
    theirs: dict[str, object] = {"f:status": {"f:allocated": {"f:deviceclass/nic": {}}}}
    entry = {"manager": "vc-scheduler", "fieldsV1": theirs}
    org = a_queue("org").allocated({"deviceclass/nic": "7"}).add("metadata", "managedFields", item=entry)
    show(world.caches.queues, "org", org.view())
    claim = a_claim("c").exactly("r", "gpu", count=2, capacity={"m": "1Gi"}).exactly("s", "nic")
    show(world.caches.claims, "ml/c", claim.view())
    show(world.caches.pods, "ml/d", a_pod("d").claim("dev", name="c").in_queue("q").bound_to("n").view())
    gpu = {"deviceclass/gpu": "2", "m.deviceclass/gpu": str(2 * 2**30)}
    async with world.running():
        assert sorted(map(str, world.patches())) == sorted(
            [str(allocated(**gpu)), str(allocated(A="2", **gpu, **{"deviceclass/nic": "1"}))]
        )


async def test_a_device_quota_that_cannot_be_read_is_told_on_the_queue() -> None:
    world = World(QUEUE.put("spec", "dra", value={"capability": {"gpu": {"count": -1}}}))
    async with world.running():
        assert [event[:2] for event in world.recorder.emitted] == [
            ("Queue q", reasons.DEVICE_QUOTA_MALFORMED)
        ]
