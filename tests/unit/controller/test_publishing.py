"""Queue status: written on change only, and never in a fight at somebody else's pace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from controller import publishing
from controller.announcements import Announcements
from controller.metrics import Metrics
from controller.publishing import Publisher
from core import reasons
from core.display.notices import QueueNotice, queue_notices
from core.objects import DeviceClass
from core.queues.ledger import Ledger
from kube import errors
from kube.lease import Term
from kube.workqueue import SLOW_S
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import QueueBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

START = 1_000_000
pytestmark = pytest.mark.looptime(start=START)
"""Far from 0, which would pass for a moment at which nothing has been written yet."""

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
    async def running(self, led: Term | None = None) -> AsyncIterator[None]:
        task = asyncio.create_task(self.publisher.run(led or term()))
        await asyncio.sleep(1)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def uses(self, queue: str, cards: int, name: str = "") -> None:
        """Has a pod run in a queue of eight cards of its own."""
        show(self.caches.queues, queue, a_queue(queue).cards({"A": 8}).view())
        pod = a_pod(name or queue).gpu(cards).card("A").in_queue(queue).bound_to("n").view()
        show(self.caches.pods, pod.key, pod)

    def written(self, queue: str) -> list[float]:
        """When the status of a queue was written, or tried to be, in seconds since the start."""
        return [write.at - START for write in self.writer.writes if write.name == queue]

    def last(self, queue: str) -> object:
        """What was written of a queue last."""
        return [write.body for write in self.writer.writes if write.name == queue][-1]

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


async def test_a_queue_whose_use_changes_all_the_time_is_written_once_a_second() -> None:
    """The first change after a while at once."""
    world = World(QUEUE.allocated({"A": "2"}))
    async with world.running():
        for number in range(50):
            world.uses("busy", 1 + number % 7)
            await asyncio.sleep(0.1)
        at = world.written("busy")
        assert at[0] < 1.3
        assert [round(later - earlier) for earlier, later in pairwise(at)] == [1] * (len(at) - 1)
        assert len(at) in (5, 6)


async def test_a_queue_that_was_just_written_is_not_looked_at_before_it_may_be_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it changes; what people are told of it is no later than its status."""
    looks: list[str] = []

    def counting(ledger: Ledger, name: str) -> list[QueueNotice]:
        looks.append(name)
        return queue_notices(ledger, name)

    monkeypatch.setattr(publishing, "queue_notices", counting)
    world = World(QUEUE.allocated({"A": "2"}))
    async with world.running():
        for number in range(50):
            world.uses("busy", 1 + number % 7)
            await asyncio.sleep(0.1)
        assert len(world.written("busy")) <= looks.count("busy") <= len(world.written("busy")) + 1


async def test_a_right_status_is_not_written_and_a_card_that_fell_to_nothing_is_nulled() -> None:
    world = World(QUEUE.allocated({"A": "2"}))
    async with world.running():
        assert world.patches() == []
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(1)
        assert world.patches() == [allocated(A=None)]


async def test_somebody_who_drops_our_keys_every_second_is_not_fought_at_that_pace() -> None:
    """Each time the wait doubles, up to five minutes; when the keys stood for long enough, it begins anew."""
    world = World()
    async with world.running():
        for _ in range(1500):
            written = len(world.writer.writes)
            world.shows(QUEUE.allocated({"A": "2"}))
            world.shows(QUEUE.allocated({"cpu": str(written)}))
            await asyncio.sleep(1)
        at = world.written("q")
        gaps = [later - earlier for earlier, later in pairwise(at)]
        expected = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
        assert [round(gap) for gap in gaps] == expected
        world.shows(QUEUE.allocated({"A": "2"}))
        await asyncio.sleep(1300)
        before = len(world.writer.writes)
        for _ in range(5):
            world.shows(QUEUE)
            await asyncio.sleep(1)
        assert len(world.writer.writes) == before + 2


async def test_a_new_usage_is_written_at_once_even_in_a_fight() -> None:
    world = World()
    async with world.running():
        for _ in range(30):
            world.shows(QUEUE)
            await asyncio.sleep(1)
        show(world.caches.pods, "ml/b", RUNNING.uid("b").view())
        await asyncio.sleep(1)
        assert world.patches()[-1] == allocated(A="4")
        before = len(world.writer.writes)
        for _ in range(5):
            world.shows(QUEUE)
            await asyncio.sleep(1)
        assert len(world.writer.writes) == before + 1, "what is fought over is another status now"


async def test_a_failed_write_is_repeated_later_without_any_further_event() -> None:
    world = World()
    world.writer.answers.append(errors.ServerError(500, "InternalError", "etcd", None, None))
    async with world.running():
        await asyncio.sleep(10)
        assert world.patches()[:2] == [allocated(A="2"), allocated(A="2")]


async def test_one_queue_whose_write_hangs_and_fails_delays_no_other() -> None:
    """It hangs for 4 s, each time; 200 others are written within moments, at the start and with every change."""
    world = World()
    world.writer.stuck.add("bad")
    world.uses("bad", 1)
    others = [f"o{number}" for number in range(200)]
    for other in others:
        world.uses(other, 1)
    async with world.running():
        assert {write.name for write in world.writer.writes} == {"bad", "q", *others}
        for round_ in range(1, 6):
            await asyncio.sleep(5)
            changed = asyncio.get_running_loop().time() - START
            world.uses("bad", 1, f"bad-{round_}")
            for other in others:
                world.uses(other, 1, f"{other}-{round_}")
            await asyncio.sleep(0.5)
            assert all(changed <= world.written(other)[-1] < changed + 0.5 for other in others)
        assert 3 <= len(world.written("bad")) <= 6


async def test_queues_that_hang_delay_another_one_for_moments_until_that_is_known_and_then_not_at_all() -> (
    None
):
    world, clock = World(), asyncio.get_running_loop().time
    stuck = [f"s{number}" for number in range(200)]
    world.writer.stuck.update(stuck)
    for name in stuck:
        world.uses(name, 1)

    async with world.running():
        known_s = len(stuck) / publishing.SIDE_BY_SIDE * SLOW_S
        for most_s in (known_s, *[1.0] * 60):
            changed = clock() - START
            world.uses("late", 1, f"p{changed}")
            await asyncio.sleep(most_s)
            assert changed <= world.written("late")[-1] < changed + most_s


async def test_a_server_that_asks_to_be_left_alone_is_left_alone_whatever_changes() -> None:
    world = World()
    world.writer.answers.append(errors.Throttled(429, "TooManyRequests", "later", None, 60.0))
    async with world.running():
        for number in range(50):
            world.uses("q", 1, f"more-{number}")
            await asyncio.sleep(1)
        assert len(world.writer.writes) == 1
        await asyncio.sleep(9.5)
        assert len(world.writer.writes) == 2
        assert world.patches()[-1] == allocated(A="52")


async def test_changes_of_one_burst_are_written_together_and_only_what_changed_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, looked = World(), list[str]()

    def notices(ledger: Ledger, name: str) -> list[QueueNotice]:
        looked.append(name)
        return queue_notices(ledger, name)

    monkeypatch.setattr(publishing, "queue_notices", notices)
    for number in range(300):
        world.uses(f"o{number}", 1)
        show(world.caches.queues, f"o{number}", a_queue(f"o{number}").allocated({"A": "1"}).view())
    async with world.running():
        assert len(looked) == 301
        await asyncio.sleep(10)
        looked.clear()
        for number in range(50):
            world.uses("o7", 1, f"p{number}")
            await asyncio.sleep(0.003)
        await asyncio.sleep(1)
        assert set(looked) == {"o7"}
        assert len(looked) <= 3
        assert len(world.written("o7")) <= 2
        assert world.patches()[-1] == allocated(A="51")


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
            (
                "Get request resource failed, Queue <q>, error: no resource name found for card <K80>. "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        )
    ]


async def test_devices_are_shown_in_the_queue_and_above_and_volcano_s_own_keys_are_left_to_it() -> None:
    world = World(QUEUE.child_of("org"))
    theirs: dict[str, object] = {"f:status": {"f:allocated": {"f:deviceclass/nic": {}}}}
    entry = {"manager": "vc-scheduler", "fieldsV1": theirs}
    org = a_queue("org").allocated({"deviceclass/nic": "7"}).add("metadata", "managedFields", item=entry)
    show(world.caches.queues, "org", org.view())
    claim = a_claim("c").exactly("r", "gpu", count=2, capacity={"m": "1Gi"}).exactly("s", "nic")
    for name in ("gpu", "nic"):
        show(world.caches.device_classes, name, DeviceClass(name))
    show(world.caches.claims, "ml/c", claim.view())
    show(world.caches.pods, "ml/d", a_pod("d").claim("dev", name="c").in_queue("q").bound_to("n").view())
    gpu = {"deviceclass/gpu": "2", "m.deviceclass/gpu": str(2 * 2**30)}
    async with world.running():
        first, second = sorted(world.patches(), key=str)
    assert first == allocated(A="2", **gpu, **{"deviceclass/nic": "1"})
    assert second == allocated(**gpu)


async def test_a_device_quota_that_cannot_be_read_is_told_on_the_queue() -> None:
    world = World(QUEUE.put("spec", "dra", value={"capability": {"gpu": {"count": -1}}}))
    async with world.running():
        assert [event[:2] for event in world.recorder.emitted] == [
            ("Queue q", reasons.DEVICE_QUOTA_MALFORMED)
        ]
