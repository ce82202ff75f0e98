"""The watch over reserved pods: it sleeps until somebody is due, says it once, and deletes only where that is set."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller import unfinished
from controller.announcements import Announcements
from controller.evictions import BURST, EVERY_S
from controller.metrics import Metrics
from controller.reservations import ReservationWatch
from core import reasons
from core.objects import raw
from core.plan.reservations import Overdue, Reservations
from core.settings import ReservationSettings, Settings
from kube import errors
from kube.lease import Term
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

MONOTONIC = 1_000_000
pytestmark = pytest.mark.looptime(start=MONOTONIC)

START = "2024-01-01T00:00:00Z"
POD = a_pod("p").gpu(1).card("A").in_queue("q").owned_by("ReplicaSet", "rs").written_by("cardquota", START)
POD = POD.put("metadata", "resourceVersion", value="7")
WARN = ReservationSettings(warn_after_s=600)
EVICT = ReservationSettings(warn_after_s=600, evict_after_s=3600)


@pytest.fixture(autouse=True)
def _gangs_are_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are none here: to look each second of a day took most of these tests' time."""
    monkeypatch.setattr(unfinished, "_LOOK_S", 600.0)


class World:
    """Time begins with the lift of POD; `skew_s` is by how much the controller's clock is ahead of the API server's."""

    def __init__(self, *pods: PodBuilder, settings: ReservationSettings = WARN, skew_s: int = 0) -> None:
        self.skew_s = skew_s
        self.caches = caches([a_node("n").card("A", 8).view()], [pod.view() for pod in pods])
        show(self.caches.queues, "q", a_queue("q").cards({"A": 8}).view())
        self.writer, self.recorder, self.registry = Writer(), Recorder(), CollectorRegistry()
        announcements, metrics = Announcements(self.recorder), Metrics(self.registry)
        whole = Settings(reservation=settings)
        self.watch = ReservationWatch(self.writer, self.caches, announcements, metrics, whole, self._now())

    def _now(self) -> Callable[[], int]:
        def now() -> int:
            passed_s = asyncio.get_running_loop().time() - MONOTONIC + self.skew_s
            return raw.timestamp(START) + round(passed_s * 10**6)

        return now

    @asynccontextmanager
    async def running(self, led: Term | None = None) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run(led or term()))
        await asyncio.sleep(1)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def shows(self, pod: PodBuilder) -> None:
        show(self.caches.pods, pod.view().key, pod.view())

    def reserves(self, *names: str) -> None:
        """Has pods reserved that were lifted in the moment in which the world began."""
        for name in names:
            self.shows(POD.put("metadata", "name", value=name).uid(name))

    def deleted(self) -> list[str]:
        return [key.removeprefix("ml/") for key, _, _ in self.writer.deletions]

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


async def test_nothing_is_looked_at_before_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that comes in between is due later, so it does not even wake the watch."""
    looks, take_due = 0, Reservations.take_due

    def counted(reservations: Reservations, now: int) -> Iterator[Overdue]:
        nonlocal looks
        looks += 1
        return take_due(reservations, now)

    monkeypatch.setattr(Reservations, "take_due", counted)
    world = World(POD)
    async with world.running():
        looks = 0
        for number in range(100):
            world.shows(a_pod(f"o{number}").gpu(1).card("A").written_by("cardquota", "2024-01-01T00:01:00Z"))
            await asyncio.sleep(1)
        assert looks == 0


async def test_a_pod_that_is_due_sooner_wakes_the_watch() -> None:
    world = World(POD)
    async with world.running():
        world.shows(a_pod("older").gpu(1).card("A").written_by("cardquota", "2023-12-31T23:55:00Z"))
        await asyncio.sleep(310)
        assert world.said() == [("Pod older", reasons.RESERVED_TOO_LONG)]


async def test_the_time_at_gates_of_others_is_none_in_which_quota_was_held() -> None:
    """Past our gate without a record, at another one: it is reserved from the moment in which that one goes."""
    world = World(POD.put("spec", "schedulingGates", value=[{"name": "example.com/licence"}]))
    async with world.running():
        await asyncio.sleep(5000)
        assert world.said() == []
        world.shows(POD)
        await asyncio.sleep(590)
        assert world.said() == []
        await asyncio.sleep(20)
        assert world.said() == [("Pod p", reasons.RESERVED_TOO_LONG)]


async def test_what_was_due_under_the_leader_before_is_told_at_once() -> None:
    world = World(POD)
    await asyncio.sleep(5000)
    async with world.running():
        assert world.said() == [("Pod p", reasons.RESERVED_TOO_LONG)]
    async with world.running():
        assert len(world.recorder.emitted) == 1, "the same process has said it already"


async def test_a_lift_that_is_noted_in_whole_seconds_is_warned_of_no_sooner_than_is_set() -> None:
    """One in the last moments of a second is noted as if it had been at its begin."""
    world = World(settings=ReservationSettings(warn_after_s=1))
    async with world.running():
        await asyncio.sleep(0.985)
        world.shows(POD.written_by("cardquota", "2024-01-01T00:00:01Z"))
        await asyncio.sleep(0.98)
        assert world.said() == []
        await asyncio.sleep(0.1)
        assert world.said() == [("Pod p", reasons.RESERVED_TOO_LONG)]


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


@pytest.mark.parametrize(("skew_s", "told_after_s"), [(-300, 600), (-(10**9), 600), (300, 300), (10**9, 0)])
async def test_a_skewed_clock_brings_the_warning_forward_at_most(skew_s: int, told_after_s: int) -> None:
    world = World(POD, skew_s=skew_s)
    async with world.running():
        await asyncio.sleep(max(0, told_after_s - 10))
        assert bool(world.said()) is (told_after_s == 0)
        await asyncio.sleep(20)
        assert len(world.said()) == 1


@pytest.mark.parametrize("skew_s", [-86_400, -5 * 3600, 5 * 3600, 86_400, 10**9])
@pytest.mark.parametrize("jump_at_s", [0, 1800, 3590])
async def test_a_clock_that_jumps_deletes_nobody_early_and_nobody_late(skew_s: int, jump_at_s: int) -> None:
    world = World(settings=EVICT, skew_s=0 if jump_at_s else skew_s)
    world.reserves("p")
    async with world.running():
        await asyncio.sleep(max(0, jump_at_s - 1))
        world.skew_s = skew_s
        world.shows(
            POD.put("metadata", "name", value="p").uid("p").put("metadata", "resourceVersion", value="9")
        )
        await asyncio.sleep(max(1, 3595 - jump_at_s))
        assert world.deleted() == []
        await asyncio.sleep(10)
        assert world.deleted() == ["p"]


async def test_a_process_that_starts_counts_anew_towards_a_deletion_and_warns_at_once() -> None:
    """How long a pod was reserved before is known by clocks that may be wrong; a standby counts as well as the leader."""
    await asyncio.sleep(10_000)
    world = World(POD, settings=EVICT)
    await asyncio.sleep(1000)
    async with world.running():
        assert world.said() == [("Pod p", reasons.RESERVED_TOO_LONG)]
        await asyncio.sleep(2590)
        assert world.deleted() == []
        await asyncio.sleep(20)
        assert world.deleted() == ["p"]


async def test_thousands_that_are_due_together_go_one_by_one() -> None:
    """By a setting that was a mistake, for example. Who got a node meanwhile holds nobody up."""
    settings = ReservationSettings(warn_after_s=600, evict_after_s=60)
    world, names = World(settings=settings), [f"p{number:04}" for number in range(2000)]
    world.reserves(*names)
    await asyncio.sleep(60)
    async with world.running():
        assert len(world.writer.deletions) == BURST
        await asyncio.sleep(20 * EVERY_S)
        assert len(world.writer.deletions) in range(BURST + 19, BURST + 22)
        assert world.deleted() == names[: len(world.writer.deletions)]
        for name in names:
            show(world.caches.pods, f"ml/{name}", None)
        world.reserves("later")
        await asyncio.sleep(70)
        assert world.deleted()[-1] == "later"
        assert len(world.writer.deletions) in range(BURST + 20, BURST + 23)


async def test_one_that_is_still_there_comes_up_again() -> None:
    world = World(POD, settings=EVICT)
    async with world.running():
        await asyncio.sleep(3600 + 20)
        assert len(world.writer.deletions) == 1
        await asyncio.sleep(20)
        assert len(world.writer.deletions) == 2


async def test_one_whose_deletion_hangs_and_fails_delays_no_other() -> None:
    world = World(settings=EVICT)
    world.writer.stuck.add("bad")
    names = ["bad", *(f"p{number}" for number in range(200))]
    world.reserves(*names)
    async with world.running():
        await asyncio.sleep(3599)
        for second in range(300):
            await asyncio.sleep(1)
            for name in {*world.deleted()} - {"bad"}:
                show(world.caches.pods, f"ml/{name}", None)
            assert len({*world.deleted()}) == min(BURST + second, 201)
        assert 3 <= world.deleted().count("bad") <= 5


async def test_many_whose_deletions_fail_come_after_one_that_was_not_tried_yet() -> None:
    """And all of them together are tried at the pace of all deletions, as is what is left when the API server is back."""
    world, stuck = World(settings=EVICT), [f"s{number}" for number in range(300)]
    world.writer.stuck.update(stuck)
    world.reserves(*stuck)
    async with world.running():
        await asyncio.sleep(1000)
        world.reserves("late")
        await asyncio.sleep(2600)
        begun = len(world.writer.deletions)
        await asyncio.sleep(1003)
        assert len(world.writer.deletions) - begun <= 1003 / EVERY_S + BURST
        assert "late" in world.deleted()[-10:]
        world.writer.stuck.clear()
        begun = len(world.writer.deletions)
        await asyncio.sleep(60)
        assert len(world.writer.deletions) - begun <= 60 / EVERY_S + BURST


async def test_a_server_that_asks_to_be_left_alone_is_left_alone() -> None:
    world = World(POD, settings=EVICT)
    world.writer.answers.append(errors.Throttled(429, "TooManyRequests", "later", None, 120.0))
    async with world.running():
        await asyncio.sleep(3600 + 110)
        assert len(world.writer.deletions) == 1
        await asyncio.sleep(20)
        assert len(world.writer.deletions) == 2


async def test_a_lease_that_is_lost_in_between_ends_the_deletions() -> None:
    world, over = World(settings=EVICT), term()
    world.reserves(*(f"p{number}" for number in range(50)))
    async with world.running(over):
        await asyncio.sleep(3600 + 10)
        begun = len(world.writer.deletions)
        assert begun > BURST
        over.end()
        await asyncio.sleep(100)
        assert len(world.writer.deletions) == begun


async def test_a_term_that_is_over_deletes_nobody() -> None:
    world, over = World(POD, settings=EVICT), term()
    over.end()
    await asyncio.sleep(4000)
    task = asyncio.create_task(world.watch.run(over))
    await asyncio.sleep(100)
    task.cancel()
    await asyncio.wait({task})
    assert world.writer.deletions == []
