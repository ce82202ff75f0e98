"""The watch over gangs that were cut short: it tells, and deletes only where that is set, a few at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller import unfinished
from controller.announcements import Announcements
from controller.evictions import BURST
from controller.metrics import Metrics
from controller.reservations import ReservationWatch
from core import reasons
from core.objects import Pod, raw
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.refusal import Refusal
from core.settings import ReservationSettings, Settings
from kube import errors
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

MONOTONIC = 1_000_000
pytestmark = pytest.mark.looptime(start=MONOTONIC)

LIFTED = "2024-01-01T00:00:00Z"
TOLD = ReservationSettings(warn_after_s=600)
GIVES_BACK = ReservationSettings(warn_after_s=600, unfinished_after_s=60)


class World:
    """Gangs of which one member waits and all others are lifted; the wall clock is a day ahead."""

    def __init__(self, settings: ReservationSettings) -> None:
        self.caches = caches([a_node("n").card("A", 64).view()])
        show(self.caches.queues, "q", a_queue("q").cards({"A": 64}).view())
        self.writer, self.recorder, self.registry = Writer(), Recorder(), CollectorRegistry()
        announcements, metrics = Announcements(self.recorder), Metrics(self.registry)
        self.announcements = announcements
        whole = Settings(reservation=settings)
        ahead = raw.timestamp(LIFTED) + 86_400 * 10**6
        self.watch = ReservationWatch(self.writer, self.caches, announcements, metrics, whole, lambda: ahead)

    def cut(self, gang: str, created: str, size: int = 4) -> None:
        group = a_group(gang).in_queue("q").min_member(size).created(created).view()
        show(self.caches.groups, f"ml/{gang}", group)
        for number in range(size - 1):
            self.shows(self.member(gang, number, size))
        self.shows(a_pod(f"{gang}-{size - 1}").gpu(1).card("A").in_group(gang).gated())

    def member(self, gang: str, number: int, size: int = 4) -> PodBuilder:
        pod = a_pod(f"{gang}-{number}").gpu(1).card("A").in_group(gang).owned_by("Job", gang)
        return pod.together(size).assigned({"A": 1}).charged("q").written_by("cardquota", LIFTED)

    def shows(self, pod: PodBuilder) -> None:
        show(self.caches.pods, pod.view().key, pod.view())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run(term()))
        await asyncio.sleep(0.5)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def deleted(self) -> list[str]:
        return [key.removeprefix("ml/") for key, _, _ in self.writer.deletions]

    def said(self, *codes: str) -> list[tuple[str, str]]:
        return [event[:2] for event in self.recorder.emitted if event[1] in codes]


async def test_without_the_setting_it_is_told_once_on_the_podgroup_and_nobody_is_deleted() -> None:
    world = World(TOLD)
    world.cut("g", LIFTED)
    async with world.running():
        await asyncio.sleep(590)
        assert world.said(reasons.GANG_UNFINISHED) == []
        await asyncio.sleep(10**4)
    assert world.said(reasons.GANG_UNFINISHED) == [("PodGroup g", reasons.GANG_UNFINISHED)]
    assert world.deleted() == []


async def test_with_the_setting_the_younger_gang_gives_back_and_each_pod_says_so() -> None:
    """No wall clock brings that forward: the lift was a day ago by ours."""
    world = World(GIVES_BACK)
    world.cut("old", LIFTED)
    world.cut("young", "2024-01-01T00:00:05Z")
    async with world.running():
        await asyncio.sleep(59)
        assert world.deleted() == []
        await asyncio.sleep(2.6)
        assert world.deleted() == ["young-0", "young-1", "young-2"]
        given_back = [(f"Pod young-{number}", reasons.GANG_GIVEN_BACK) for number in range(3)]
        assert world.said(reasons.GANG_GIVEN_BACK) == given_back
    assert world.said(reasons.GANG_UNFINISHED)[0] == ("PodGroup old", reasons.GANG_UNFINISHED)


async def test_at_first_a_few_are_deleted_and_then_one_a_second() -> None:
    world = World(GIVES_BACK)
    world.cut("g", LIFTED, size=20)
    async with world.running():
        await asyncio.sleep(60.2)
        assert len(world.deleted()) == BURST
        await asyncio.sleep(5)
        assert len(world.deleted()) == BURST + 5


async def test_a_gang_that_is_finished_meanwhile_keeps_the_rest() -> None:
    """What was given back was made anew and let in at once."""
    world = World(GIVES_BACK)
    world.cut("g", LIFTED, size=20)
    async with world.running():
        await asyncio.sleep(60.2)
        for number in range(20):
            world.shows(world.member("g", number, size=20))
        await asyncio.sleep(30)
    assert len(world.deleted()) == BURST


async def test_what_was_said_of_a_gang_is_taken_back_once_when_it_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may wait to be said: of a member that was told much already."""
    world, over = World(TOLD), list[str]()
    monkeypatch.setattr(Announcements, "finished_member", lambda _, pod: over.append(pod.name))
    world.cut("g", LIFTED)
    async with world.running():
        await asyncio.sleep(700)
        assert over == []
        for number in range(4):
            world.shows(world.member("g", number))
        await asyncio.sleep(30)
    assert over == ["g-0", "g-1", "g-2"]


def alone(name: str) -> PodBuilder:
    """A member of a gang without PodGroup."""
    return a_pod(name).gpu(1).card("A").in_queue("q").in_gang("train", 4)


def let_in(name: str) -> PodBuilder:
    return alone(name).together(4).assigned({"A": 1}).charged("q").recorded_in_gang()


async def has_had_two_events(world: World, waits: PodBuilder) -> None:
    for code in (reasons.NO_FREE_CARD, reasons.QUOTA_EXCEEDED):
        world.announcements.held(Hold(waits.view(), "q", Refusal(code, "text")))
        await asyncio.sleep(60)
    assert len(world.recorder.emitted) == 2


async def test_a_member_whose_lift_is_tried_waits_still_and_has_no_third_event() -> None:
    world, last = World(TOLD), alone("last").gated()
    for number in range(3):
        world.shows(let_in(f"m{number}").bound_to("n"))
    world.shows(last)
    async with background(world.announcements.run()), world.running():
        await has_had_two_events(world, last)
        (lift,) = Planner(world.caches.ledger).decide("q")
        assert (lift.pod.name, isinstance(lift, Lift)) == ("last", True)
        await asyncio.sleep(2000)
        assert world.said(reasons.GANG_UNFINISHED) == []
        await asyncio.sleep(1600)
        assert world.said(reasons.GANG_UNFINISHED) == [("Pod last", reasons.GANG_UNFINISHED)]


async def test_a_member_that_gets_in_alone_is_told_at_once_though_it_was_to_be_told_while_it_waited() -> None:
    """It holds quota now, and may be deleted for that."""
    world, waits, last = World(TOLD), alone("a").gated(), alone("b").gated()
    for number in range(2):
        world.shows(let_in(f"m{number}").bound_to("n"))
    world.shows(waits)
    world.shows(last)
    async with background(world.announcements.run()), world.running():
        await has_had_two_events(world, waits)
        await asyncio.sleep(600)
        assert world.said(reasons.GANG_UNFINISHED) == []
        world.announcements.pod_changed(waits.view(), let_in("a").view())
        world.shows(let_in("a"))
        await asyncio.sleep(2)
        assert world.said(reasons.GANG_UNFINISHED) == [("Pod a", reasons.GANG_UNFINISHED)]
        await asyncio.sleep(10_000)
        assert len(world.said(reasons.GANG_UNFINISHED)) == 1


async def test_what_was_to_be_said_to_one_that_waits_is_taken_back_when_others_are_told_instead() -> None:
    world, waits = World(TOLD), alone("a").gated()
    for number in range(2):
        world.shows(let_in(f"m{number}").bound_to("n"))
    world.shows(waits)
    world.shows(alone("b").gated())
    async with background(world.announcements.run()), world.running():
        await has_had_two_events(world, waits)
        await asyncio.sleep(600)
        world.shows(let_in("b"))
        await asyncio.sleep(2)
        assert world.said(reasons.GANG_UNFINISHED) == [("Pod b", reasons.GANG_UNFINISHED)]
        await asyncio.sleep(10_000)
        assert len(world.said(reasons.GANG_UNFINISHED)) == 1


async def test_who_goes_while_the_others_are_told_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(TOLD)
    monkeypatch.setattr(unfinished, "_TOLD_IN_A_STEP", 1)
    tell = Announcements.unfinished_member

    def telling(announcements: Announcements, pod: Pod, reason: str, note: str) -> None:
        tell(announcements, pod, reason, note)
        show(world.caches.pods, "ml/m2", None)

    monkeypatch.setattr(Announcements, "unfinished_member", telling)
    for number in range(3):
        world.shows(let_in(f"m{number}"))
    world.shows(alone("last").gated())
    async with world.running():
        await asyncio.sleep(700)
    said = {about for about, _ in world.said(reasons.GANG_UNFINISHED)}
    assert said == {"Pod m0", "Pod m1"}


async def test_a_deletion_that_fails_is_tried_again() -> None:
    world = World(GIVES_BACK)
    world.cut("g", LIFTED)
    world.writer.answers.extend([errors.ServerError(500, "InternalError", "no", None, None)] * 3)
    async with world.running():
        await asyncio.sleep(61)
        assert len(world.deleted()) == 3
        assert world.said(reasons.GANG_GIVEN_BACK) == []
        await asyncio.sleep(33)
    assert len(world.said(reasons.GANG_GIVEN_BACK)) == 3
    assert (
        world.registry.get_sample_value("cardquota_reservation_evictions_total", {"outcome": "failed"}) == 3
    )
