"""The watch over reserved pods: it sleeps until somebody is due, says it once, and deletes only where that is set."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.metrics import Metrics
from controller.reservations import ReservationWatch
from core import reasons
from core.objects import raw
from core.settings import ReservationSettings, Settings
from kube import errors
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

START = "2024-01-01T00:00:00Z"
POD = a_pod("p").gpu(1).card("A").in_queue("q").owned_by("ReplicaSet", "rs").written_by("cardquota", START)
POD = POD.put("metadata", "resourceVersion", value="7")
WARN = ReservationSettings(warn_after_s=600)
EVICT = ReservationSettings(warn_after_s=600, evict_after_s=3600)


class World:
    """Time begins with the lift of POD; `skew_s` is by how much the controller's clock is ahead of the API server's."""

    def __init__(self, *pods: PodBuilder, settings: ReservationSettings = WARN, skew_s: int = 0) -> None:
        self.looked = 0
        self.skew_s = skew_s
        self.caches = caches([a_node("n").card("A", 8).view()], [pod.view() for pod in pods])
        show(self.caches.queues, "q", a_queue("q").cards({"A": 8}).view())
        self.writer, self.recorder, self.registry = Writer(), Recorder(), CollectorRegistry()
        announcements, metrics = Announcements(self.recorder), Metrics(self.registry)
        whole = Settings(reservation=settings)
        self.watch = ReservationWatch(self.writer, self.caches, announcements, metrics, whole, self._now())

    def _now(self) -> Callable[[], int]:
        def now() -> int:
            self.looked += 1
            passed_s = asyncio.get_running_loop().time() + self.skew_s
            return raw.timestamp(START) + round(passed_s * 10**6)

        return now

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run(term()))
        await asyncio.sleep(1)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def shows(self, pod: PodBuilder) -> None:
        show(self.caches.pods, pod.view().key, pod.view())

    def said(self) -> list[tuple[str, str]]:
        return [event[:2] for event in self.recorder.emitted]

    def evictions(self, outcome: str) -> float | None:
        name = "cardquota_reservation_evictions_total"
        return self.registry.get_sample_value(name, {"outcome": outcome})


async def test_a_late_pod_is_told_once_and_left_alone() -> None:
    world = World(POD)
    async with world.running():
        await asyncio.sleep(590)
        assert world.said() == []
        await asyncio.sleep(20)
        assert world.said() == [("Pod p", reasons.RESERVED_TOO_LONG)]
        world.shows(POD.put("metadata", "resourceVersion", value="8"))
        await asyncio.sleep(10**5)
        assert len(world.recorder.emitted) == 1
        assert world.writer.deletions == []
        assert [pod.name for pod in world.watch.late()] == ["p"]


async def test_nothing_is_looked_at_before_it_is_due() -> None:
    """A pod that comes in between is due later, so it does not even wake the watch."""
    world = World(POD)
    async with world.running():
        looked = world.looked
        for number in range(100):
            world.shows(a_pod(f"o{number}").gpu(1).card("A").written_by("cardquota", "2024-01-01T00:01:00Z"))
            await asyncio.sleep(1)
        assert world.looked == looked


async def test_a_pod_that_is_due_sooner_wakes_the_watch() -> None:
    world = World(POD)
    async with world.running():
        world.shows(a_pod("older").gpu(1).card("A").written_by("cardquota", "2023-12-31T23:55:00Z"))
        await asyncio.sleep(310)
        assert world.said() == [("Pod older", reasons.RESERVED_TOO_LONG)]


async def test_what_was_due_under_the_leader_before_is_told_at_once() -> None:
    world = World(POD)
    await asyncio.sleep(5000)
    async with world.running():
        assert world.said() == [("Pod p", reasons.RESERVED_TOO_LONG)]
    async with world.running():
        assert len(world.recorder.emitted) == 1, "the same process has said it already"


async def test_a_pod_is_deleted_as_it_was_seen_and_that_is_said() -> None:
    world = World(POD, settings=EVICT)
    async with world.running():
        await asyncio.sleep(3590)
        assert world.writer.deletions == []
        await asyncio.sleep(20)
        assert world.writer.deletions == [("ml/p", "uid-ml-p", "7")]
        assert world.said() == [
            ("Pod p", reasons.RESERVED_TOO_LONG),
            ("Pod p", reasons.RESERVATION_EVICTED),
        ]
        show(world.caches.pods, "ml/p", None)
        await asyncio.sleep(10**4)
        assert len(world.writer.deletions) == 1
        assert world.evictions("done") == 1


async def test_a_pod_that_got_its_node_in_that_moment_stays() -> None:
    world = World(POD, settings=EVICT)
    world.writer.answers.append(errors.Conflict(409, "Conflict", "changed", None, None))
    async with world.running():
        await asyncio.sleep(3610)
        world.shows(POD.bound_to("n"))
        await asyncio.sleep(10**4)
        assert len(world.writer.deletions) == 1
        assert reasons.RESERVATION_EVICTED not in dict(world.said()).values()


@pytest.mark.parametrize(
    "error",
    [
        errors.ConnectionFailed("cut"),
        errors.ServerError(500, "InternalError", "etcd", None, None),
        errors.Forbidden(403, "Forbidden", "no rights", None, None),
    ],
)
async def test_a_deletion_that_failed_is_tried_again_and_not_in_a_hot_loop(error: errors.KubeError) -> None:
    world = World(POD, settings=EVICT)
    world.writer.answers.extend([error] * 3)
    async with world.running():
        await asyncio.sleep(3600 + 100)
        assert len(world.writer.deletions) == 4
        assert (world.evictions("failed"), world.evictions("done")) == (3, 1)
        assert world.said()[-1] == ("Pod p", reasons.RESERVATION_EVICTED)


@pytest.mark.parametrize(("skew_s", "told_after_s"), [(-300, 900), (300, 300), (10**9, 0)])
async def test_a_skewed_clock_moves_the_time_and_breaks_nothing(skew_s: int, told_after_s: int) -> None:
    world = World(POD, skew_s=skew_s)
    async with world.running():
        await asyncio.sleep(max(0, told_after_s - 10))
        assert bool(world.said()) is (told_after_s == 0)
        await asyncio.sleep(20)
        assert len(world.said()) == 1


async def test_a_term_that_is_over_deletes_nobody() -> None:
    world, over = World(POD, settings=EVICT), term()
    over.end()
    await asyncio.sleep(4000)
    task = asyncio.create_task(world.watch.run(over))
    await asyncio.sleep(100)
    task.cancel()
    await asyncio.wait({task})
    assert world.writer.deletions == []
