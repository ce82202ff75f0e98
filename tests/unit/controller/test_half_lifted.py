"""A gang of which half is lifted while the lifts of the rest fail for long, or are refused for good.

It ends whole as soon as they succeed. Until then it is told, with the reason and the way out; and where that is set it gives back
what it holds. Others are held up by nothing but the quota that the half holds.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.reservations import ReservationWatch
from core import reasons
from core.settings import ReservationSettings, Settings
from kube import errors
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

STRANGER = 'admission webhook "limits.example" denied the request: not on a Sunday'
FAILURES = {
    "cut": errors.ConnectionFailed("cut"),
    "broken": errors.ServerError(500, "InternalError", "broken", None, None),
    "throttled": errors.Throttled(429, "TooManyRequests", "slow down", None, 1.0),
    "forbidden": errors.Forbidden(403, "Forbidden", STRANGER, None, None),
    "invalid": errors.Invalid(422, "Invalid", STRANGER, None, None),
    "over a ResourceQuota": errors.Forbidden(403, "Forbidden", "exceeded quota: gpus", None, None),
}
SIZE, QUOTA = 4, 6
IN, OUT = ("one-0", "one-1"), ("one-2", "one-3")
TRIED_S = 300
"""So long a lift that fails is tried before the gang counts as cut short, and so long it is put off at most."""
WARN_S, GIVE_BACK_S = 600, 700


def member(name: str) -> PodBuilder:
    gang, _, number = name.partition("-")
    built = a_pod(name).gpu(1).card("A").in_group(gang).owned_by("Job", gang).gated()
    return built.created(f"2024-01-01T00:00:0{number}Z").put("metadata", "resourceVersion", value="1")


def lifted(name: str, gang: str = "one") -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_group(gang).owned_by("Job", gang).together(SIZE)
    return built.charged("q").assigned({"A": 1}).put("metadata", "resourceVersion", value="9")


class World:
    """A gang of four that comes first, one of five that comes later, and a pod alone; cards for six."""

    def __init__(self, *, gives_back: bool = False) -> None:
        reservation = ReservationSettings(
            warn_after_s=WARN_S, unfinished_after_s=GIVE_BACK_S if gives_back else None
        )
        settings = Settings(reservation=reservation)
        self.caches: Caches = caches([a_node("n").card("A", 500).view()], settings=settings)
        show(self.caches.queues, "q", a_queue("q").cards({"A": QUOTA}).view())
        self.writer, self.recorder = Writer(), Recorder()
        announcements, metrics = Announcements(self.recorder), Metrics(CollectorRegistry())
        self.announcements = announcements
        self.lifter = Lifter(self.writer, self.caches, announcements, metrics, settle_s=0.0)
        self.watch = ReservationWatch(self.writer, self.caches, announcements, metrics, settings, lambda: 0)
        self.series = QueueSeries(self.caches.ledger, self.watch.late, self.watch.unfinished)
        self.series.leading = True
        group = a_group("one").in_queue("q").min_member(SIZE).created("2024-01-01T00:00:00Z").view()
        show(self.caches.groups, group.key, group)
        for name in (*IN, *OUT):
            self.shows(member(name))
            self.writer.answered[name] = lifted(name).build()

    def fail(self, failure: errors.KubeError | None) -> None:
        self.writer.answer_to = lambda name: failure if name in OUT else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with (
            background(self.announcements.run()),
            background(self.lifter.run(term())),
            background(self.watch.run(term())),
        ):
            await asyncio.sleep(0.5)
            for name in IN:
                self.shows(lifted(name))
            yield

    def shows(self, built: PodBuilder) -> None:
        self.writer.stored[built.view().key] = built.build()
        show(self.caches.pods, built.view().key, built.view())

    def in_(self) -> set[str]:
        latest = (self.caches.latest(pod.key) for pod in self.caches.pods.values())
        return {pod.name for pod in latest if pod is not None and not pod.gated}

    def used(self) -> int:
        return self.caches.ledger.used("q", "A") // 1000

    def deleted(self) -> set[str]:
        return {key.removeprefix("ml/") for key, _, _ in self.writer.deletions}

    def counted(self) -> float:
        """What the gauge of unfinished gangs shows."""
        (gauge,) = (each for each in self.series.collect() if each.name == "cardquota_gangs_unfinished")
        return sum(sample.value for sample in gauge.samples)

    def said(self, code: str) -> dict[str, str]:
        return {about: note for about, reason, note in self.recorder.emitted if reason == code}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_it_ends_whole_once_lifts_succeed_however_long_that_took(failure: errors.KubeError) -> None:
    world = World()
    world.fail(failure)
    async with world.running():
        await asyncio.sleep(3 * TRIED_S)
        assert world.in_() == {*IN}
        world.fail(None)
        await asyncio.sleep(TRIED_S + 1)
        assert world.in_() == {*IN, *OUT}
        assert world.used() == SIZE


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_until_then_it_is_told_why_and_what_helps(failure: errors.KubeError) -> None:
    world = World()
    world.fail(failure)
    async with world.running():
        await asyncio.sleep(TRIED_S + WARN_S + 60)
        note = world.said(reasons.GANG_UNFINISHED)["PodGroup one"]
        assert "of 4 members that were let in together 2 are in" in note
        assert "2 hold quota and have no node" in note
        assert "lacks 2 (the events of those that wait say why)" in note
        assert "set reservation.unfinishedAfter, or delete pods" in note
        refused = world.said(reasons.LIFT_REFUSED)
        assert {*refused} == {f"Pod {name}" for name in OUT}
        assert all(errors.describe(failure) in why for why in refused.values())
        assert world.deleted() == set()


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_it_is_counted_without_a_gap_so_that_an_alert_on_it_is_raised(
    failure: errors.KubeError,
) -> None:
    """Also while its lifts are tried anew, for minutes, and booked all the time."""
    world = World()
    world.fail(failure)
    async with world.running():
        await asyncio.sleep(TRIED_S + 60)
        for _ in range(150):
            assert world.counted() == 1
            await asyncio.sleep(10)
        world.fail(None)
        await asyncio.sleep(TRIED_S + 60)
        assert world.in_() == {*IN, *OUT}
        assert world.counted() == 0


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_with_the_setting_the_half_gives_back_what_it_holds(failure: errors.KubeError) -> None:
    world = World(gives_back=True)
    world.fail(failure)
    async with world.running():
        await asyncio.sleep(GIVE_BACK_S - 60)
        assert world.deleted() == set()
        await asyncio.sleep(3 * TRIED_S)
        assert world.deleted() == {*IN}
        assert {*world.said(reasons.GANG_GIVEN_BACK)} == {f"Pod {name}" for name in IN}


@pytest.mark.parametrize("failure", [FAILURES["forbidden"], FAILURES["invalid"]], ids=["403", "422"])
async def test_others_go_on_with_what_the_half_does_not_hold(failure: errors.KubeError) -> None:
    """A refusal is no outage: nobody waits for the quota of what is refused."""
    world = World()
    world.fail(failure)
    async with world.running():
        for number in range(QUOTA - len(IN)):
            name = f"alone{number}"
            built = a_pod(name).gpu(1).card("A").in_queue("q")
            world.shows(built.gated().put("metadata", "resourceVersion", value="1"))
            stored = built.assigned({"A": 1}).charged("q").put("metadata", "resourceVersion", value="9")
            world.writer.answered[name] = stored.build()
        await asyncio.sleep(60)
        assert world.in_() == {*IN, *(f"alone{number}" for number in range(QUOTA - len(IN)))}
