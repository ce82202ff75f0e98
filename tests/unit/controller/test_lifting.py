"""The loop that lifts: one patch per lift, quota held while the answer is open, no hot loop after a refusal."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from core import reasons
from core.affinity import NodeRequirement
from core.plan.course import Decisions
from core.plan.decision import Lift
from core.plan.lift import Planner
from kube.lease import Term
from kube.turns import Turns
from tests.builders import a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.fakes.ticking import Ticking
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime


def pod(name: str, second: int = 0) -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_queue("q").gated().created(f"2024-01-01T00:00:{second:02}Z")
    return built.put("metadata", "resourceVersion", value="1")


class World:
    def __init__(self, *pods: PodBuilder, quota: int = 1, turns: Turns | None = None) -> None:
        self.caches: Caches = caches(
            [a_node("n").card("A", 8).view()], [each.view() for each in pods], turns=turns
        )
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
        self.caches.give_back()

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


async def test_a_term_that_is_over_writes_no_more() -> None:
    world, over = World(pod("a", 1)), term()
    over.end()
    async with world.running(over):
        assert world.writer.writes == []


async def test_what_was_assumed_is_given_back_at_the_end_of_leading() -> None:
    world = World(pod("a", 1))
    async with world.running():
        assert world.caches.ledger.used("q", "A") == 1000
    assert world.caches.ledger.used("q", "A") == 0


async def test_a_further_term_decides_on_everybody_though_nothing_has_happened() -> None:
    """What a term has told those who wait ends with it."""
    world = World(pod("a", 1), quota=0)
    for _ in range(2):
        async with world.running():
            assert list(world.announcements.holds) == ["uid-ml-a"]
        assert not world.announcements.holds
        assert not world.caches.ledger.wakeups.pending, "nobody else has it looked at"


async def test_the_pass_and_what_is_booked_anew_share_one_slice_in_each_round_of_the_loop() -> None:
    """Each of them had its own, so that others were served only after both."""
    clock = Ticking()
    many = [pod(f"p{number}") for number in range(300)]
    crowd = [a_pod(f"c{number}", namespace="crowd").gpu(1).card("A").gated() for number in range(300)]
    world = World(*many, *crowd, quota=150, turns=clock.turns)
    show(world.caches.namespaces, "crowd", a_namespace("crowd").in_queue("other").view())
    assert not world.caches.ledger.settled
    ledger = world.caches.ledger

    async def readings_until(done: Awaitable[None]) -> int:
        await done
        return clock.readings

    async with clock.beside():
        booked, decided = await asyncio.gather(
            readings_until(world.caches.settled()),
            readings_until(world.lifter._decide(Planner(ledger), ["q"])),
        )
    assert booked > 20, "a step for every few pods, and slices of the pass between them"
    assert decided > 600, "two steps for each pod"
    assert ledger.settled
    assert ledger.used("q", "A") == 150_000
    assert clock.longest <= 7


async def test_a_queue_that_is_closed_tells_those_who_wait_and_opens_for_them_again() -> None:
    """By its annotation, and by the labels of their namespace; what was lifted stays."""
    world = World(pod("a", 1), pod("b", 2), quota=2)
    queue = a_queue("q").cards({"A": 2})
    show(world.caches.queues, "q", queue.used_by("web", "env=dev").view())
    async with world.running():
        assert world.names() == []
        await asyncio.sleep(2)
        assert [event[:2] for event in world.recorder.emitted] == [
            ("Pod a", reasons.QUEUE_NOT_ALLOWED),
            ("Pod b", reasons.QUEUE_NOT_ALLOWED),
        ]
        show(world.caches.namespaces, "ml", a_namespace("ml").label("env", "dev").view())
        await asyncio.sleep(1)
        assert world.names() == ["a", "b"]
        show(world.caches.queues, "q", queue.used_by("web").view())
        await asyncio.sleep(1)
        assert world.caches.ledger.used("q", "A") == 2000


async def test_what_is_to_be_taken_back_is_not_overlooked_where_the_last_queue_goes_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both come while others have their turn between two passes: then there is nobody left to decide on."""
    world = World()
    ledger, kept = world.caches.ledger, world.lifter._writer._returned
    show(world.caches.queues, "gone", a_queue("gone").view())
    given_back: list[str] = []

    def retracting(lifts: Collection[Lift]) -> None:
        given_back.extend(lift.queue for lift in lifts)

    monkeypatch.setattr(kept, "retract", retracting)

    def both() -> None:
        show(world.caches.queues, "gone", None)
        view = pod("a").view()
        kept.keep(Lift(view, "q", {}, {}, NodeRequirement(), view))

    run = Planner.run

    def running(self: Planner, queues: list[str]) -> Decisions:
        yield from run(self, queues)
        if "q" in queues and not given_back:
            ledger.wakeups.help("gone")
            asyncio.get_running_loop().call_soon(both)

    async with world.running():
        monkeypatch.setattr(Planner, "run", running)
        ledger.wakeups.help("q")
        await asyncio.sleep(1)
        assert given_back == ["q"]
