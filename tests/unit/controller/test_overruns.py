"""Deleted pods that run on: who counts again, when, and what is said; with timers for those alone that are being deleted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from controller.announcements import Announcements
from controller.overruns import OverrunWatch
from core import reasons
from core.display.notices import queue_notices
from core.objects import raw
from core.plan.overruns import PATIENCE_S
from kube.events import Past
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder

MONOTONIC = 1_000_000
pytestmark = pytest.mark.looptime(start=MONOTONIC)

START = datetime(2024, 1, 1, tzinfo=UTC)
NODE = a_node("n").card("A", 8)
POD = a_pod("p").gpu(1).card("A").charged("q").assigned({"A": 1}).request("cpu", 2).bound_to("n")
SAID = ("Pod p", reasons.TERMINATION_OVERDUE)


def deleted(pod: PodBuilder = POD, grace_s: int = 30, *, at_s: int = 0) -> PodBuilder:
    """A pod as the API server has it after a deletion with this grace, `at_s` after the world began."""
    deadline = START + timedelta(seconds=at_s + grace_s)
    return pod.terminating(grace_s=grace_s, deadline=deadline.isoformat())


async def _nothing(_hear: Callable[[Past], None]) -> None:
    """No leader before has said anything."""


class World:
    """Time begins at START for the API server; the controller's wall clock is `skew_s` ahead of that."""

    def __init__(self, *pods: PodBuilder, skew_s: int = 0) -> None:
        self.skew_s = skew_s
        self.caches = caches([NODE.view()], [pod.view() for pod in pods])
        show(self.caches.queues, "q", a_queue("q").cards({"A": 1}).view())
        self.recorder = Recorder()
        self.announcements = Announcements(self.recorder, history=_nothing)
        self.caches.pods.subscribe(self.announcements.pod_changed)
        self.watch = OverrunWatch(self.caches, self.announcements, self._now())

    def _now(self) -> Callable[[], int]:
        def now() -> int:
            passed_s = asyncio.get_running_loop().time() - MONOTONIC + self.skew_s
            return raw.timestamp(START.isoformat()) + round(passed_s * 10**6)

        return now

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background(self.watch.run()), background(self.announcements.run()):
            yield

    def shows(self, pod: PodBuilder) -> None:
        show(self.caches.pods, pod.view().key, pod.view())

    def node(self, *, ready: bool) -> None:
        show(self.caches.nodes, "n", (NODE if ready else NODE.not_ready()).view())

    def used(self) -> int:
        return self.caches.ledger.used("q", "A") // 1000

    def said(self) -> list[tuple[str, str]]:
        return [event[:2] for event in self.recorder.emitted]


async def test_a_pod_counts_again_a_minute_after_its_deadline_and_that_is_said_once() -> None:
    world = World(POD)
    async with world.running():
        assert world.used() == 1
        world.shows(deleted())
        assert world.used() == 0
        await asyncio.sleep(30 + PATIENCE_S - 1)
        assert (world.used(), world.said()) == (0, [])
        await asyncio.sleep(2)
        assert (world.used(), world.said()) == (1, [SAID])
        note = world.recorder.emitted[0][2]
        assert "Queue <q>" in note
        assert "2024-01-01T00:00:30Z" in note
        assert "node n" in note
        world.shows(deleted().started())
        await asyncio.sleep(10**5)
        assert (world.used(), world.said()) == (1, [SAID])


@pytest.mark.parametrize("end", ["gone", "Succeeded", "Failed"])
@pytest.mark.parametrize("after_s", [45, 500])
async def test_a_pod_that_ends_is_forgotten(end: str, after_s: int) -> None:
    """Also one that finalizers keep: with its containers its quota is free for good."""
    world = World(deleted())
    async with world.running():
        await asyncio.sleep(after_s)
        show(world.caches.pods, "ml/p", None if end == "gone" else deleted().phase(end).view())
        assert (world.used(), len(world.watch)) == (0, 0)
        await asyncio.sleep(1000)
        assert world.used() == 0
        assert not world.caches.ledger.stages.overrun
        assert world.said() == ([SAID] if after_s == 500 else [])


async def test_nothing_is_kept_for_pods_that_nobody_deletes_or_that_count_anyway() -> None:
    world = World(POD, deleted(a_pod("long").bound_to("n"), 301), a_pod("unbound").terminating())
    assert len(world.watch) == 0


async def test_on_a_lost_node_nothing_counts_again() -> None:
    world = World(deleted())
    async with world.running():
        world.node(ready=False)
        await asyncio.sleep(10**4)
        assert (world.used(), world.said()) == (0, [])
        show(world.caches.nodes, "n", None)
        await asyncio.sleep(10**4)
        assert (world.used(), world.said()) == (0, [])


async def test_a_node_that_comes_back_has_a_minute_to_end_its_pods() -> None:
    world = World(deleted())
    async with world.running():
        world.node(ready=False)
        await asyncio.sleep(10**4)
        world.node(ready=True)
        await asyncio.sleep(PATIENCE_S - 1)
        assert world.used() == 0
        await asyncio.sleep(2)
        assert (world.used(), world.said()) == (1, [SAID])


async def test_a_node_that_is_lost_afterwards_takes_the_count_back() -> None:
    world = World(deleted())
    async with world.running():
        await asyncio.sleep(100)
        assert world.used() == 1
        show(world.caches.nodes, "n", NODE.label("some", "other").view())
        assert world.used() == 1, "most changes of a node are about something else"
        world.node(ready=False)
        assert world.used() == 0


async def test_a_second_deletion_with_a_shorter_grace_brings_it_forward() -> None:
    world = World(deleted(grace_s=300))
    async with world.running():
        await asyncio.sleep(10)
        world.shows(deleted(grace_s=5))
        await asyncio.sleep(PATIENCE_S - 1)
        assert world.used() == 0
        await asyncio.sleep(2)
        assert world.used() == 1


async def test_a_long_grace_that_is_shortened_gives_the_quota_back_for_a_while() -> None:
    world = World(deleted(grace_s=10**6))
    async with world.running():
        await asyncio.sleep(1000)
        assert world.used() == 1
        world.shows(deleted(grace_s=60))
        assert world.used() == 0
        await asyncio.sleep(PATIENCE_S + 1)
        assert (world.used(), world.said()) == (1, [SAID])


@pytest.mark.parametrize(
    ("skew_s", "due_s"), [(0, 90.0), (20, 70.0), (10**6, PATIENCE_S), (-20, 90.0), (-(10**6), 90.0)]
)
async def test_a_clock_that_is_wrong_never_makes_the_wait_longer(skew_s: int, due_s: float) -> None:
    world = World(deleted(), skew_s=skew_s)
    async with world.running():
        await asyncio.sleep(due_s - 1)
        assert world.used() == 0
        await asyncio.sleep(2)
        assert world.used() == 1


async def test_what_counts_again_may_be_more_than_the_quota_and_nobody_is_let_in_or_evicted() -> None:
    """Its card has been given to the next one meanwhile."""
    world = World(deleted())
    async with world.running():
        world.shows(POD.put("metadata", "name", value="next").uid("next"))
        await asyncio.sleep(100)
        assert world.used() == 2
        (notice,) = queue_notices(world.caches.ledger, "q")
        assert notice.reason == reasons.QUOTA_EXCEEDED
        show(world.caches.pods, "ml/p", None)
        assert queue_notices(world.caches.ledger, "q") == []


async def test_what_waits_is_looked_at_when_the_count_is_taken_back() -> None:
    world = World(deleted())
    async with world.running():
        world.caches.ledger.wakeups.take_figures()
        await asyncio.sleep(100)
        assert "q" in world.caches.ledger.wakeups.take_figures(), "what is published follows as well"
        world.shows(a_pod("w").gpu(1).card("A").in_queue("q").gated())
        world.caches.ledger.wakeups.take_queues()
        world.node(ready=False)
        assert world.caches.ledger.wakeups.take_queues() == ["q"]


async def test_the_cpu_of_a_pod_without_cards_counts_again_and_nothing_is_said() -> None:
    bare = a_pod("cpu").request("cpu", 4).in_queue("q").bound_to("n")
    world = World(bare)
    book = world.caches.ledger.cpu_memory
    async with world.running():
        assert book.used("q", "cpu") == 4000
        world.shows(deleted(bare))
        assert book.used("q", "cpu") == 0
        await asyncio.sleep(100)
        assert (book.used("q", "cpu"), world.said()) == (4000, [])
        show(world.caches.pods, "ml/cpu", None)
        assert book.used("q", "cpu") == 0


async def test_who_leads_later_says_it_too_unless_it_was_said() -> None:
    """As a standby it has the same books; while nobody leads here nothing is written."""
    world = World(deleted())
    async with background(world.watch.run()):
        await asyncio.sleep(100)
        assert (world.used(), world.said()) == (1, [])
        for _ in range(2):
            world.watch.tell()
            async with background(world.announcements.run()):
                await asyncio.sleep(1)
            assert world.said() == [SAID]


async def test_another_pod_of_the_name_is_not_the_one_that_was_deleted() -> None:
    world = World(deleted())
    async with world.running():
        world.shows(POD.uid("another"))
        assert len(world.watch) == 0
        await asyncio.sleep(1000)
        assert (world.used(), world.said()) == (1, [])
