"""Two gangs of four on six cards, and lifts that come to nothing for a while: what one has begun the other does not take."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lift_requests import PER_NAMESPACE
from controller.lifting import Lifter
from controller.metrics import Metrics
from core.steps import Steps
from kube import errors
from kube.resources import Resource
from tests.builders import a_group, a_node, a_pod, a_queue, a_scheduling_group
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

CUT = errors.ConnectionFailed("cut")
BROKEN = errors.ServerError(500, "InternalError", "broken", None, None)
PUT_OFF = errors.Throttled(429, "TooManyRequests", "later", None, 20.0)
SLOW_DOWN = errors.Throttled(429, "TooManyRequests", "slow down", None, 1.0)
CHANGED = errors.Conflict(409, "Conflict", "changed", None, None)
STEPS = 12
"""Steps of a pass over the few pods here; there are a few more."""
GANGS, SIZE, QUOTA = ("one", "two"), 4, 6
LAST_TWO = ("one-2", "one-3")


def member(name: str, version: str = "1", *, kubernetes: bool = False) -> PodBuilder:
    gang, _, number = name.partition("-")
    built = a_pod(name).gpu(1).card("A").in_queue("q").gated()
    built = built.in_scheduling_group(gang) if kubernetes else built.in_group(gang)
    return built.created(f"2024-01-01T00:00:0{number}Z").put("metadata", "resourceVersion", value=version)


def lifted(name: str) -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_group(name.partition("-")[0]).together(SIZE)
    return built.charged("q").assigned({"A": 1}).put("metadata", "resourceVersion", value="9")


class World:
    """The older gang comes first. What is stored is answered as it is then."""

    def __init__(self, *others: PodBuilder) -> None:
        self.caches: Caches = caches([a_node("n").card("A", 500).view()])
        show(self.caches.queues, "q", a_queue("q").cards({"A": QUOTA}).view())
        self.writer = Writer()
        for second, gang in enumerate(GANGS):
            group = a_group(gang).in_queue("q").min_member(SIZE).created(f"2024-01-01T00:00:0{second}Z")
            show(self.caches.groups, group.view().key, group.view())
            for number in range(SIZE):
                self.shows(member(f"{gang}-{number}"))
                self.writer.answered[f"{gang}-{number}"] = lifted(f"{gang}-{number}").build()
        show(self.caches.queues, "busy", a_queue("busy").cards({"A": 100}).view())
        for built in others:
            self.shows(built)
        self.announcements = Announcements(Recorder())
        metrics = Metrics(CollectorRegistry())
        self.lifter = Lifter(self.writer, self.caches, self.announcements, metrics, settle_s=0.0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background(self.announcements.run()), background(self.lifter.run(term())):
            await asyncio.sleep(0.1)
            yield

    def shows(self, built: PodBuilder) -> None:
        self.writer.stored[built.view().key] = built.build()
        show(self.caches.pods, built.view().key, built.view())

    def tried(self, gang: str) -> set[str]:
        return {write.name for write in self.writer.writes if write.name.startswith(gang)}

    def in_(self) -> list[str]:
        latest = (self.caches.latest(pod.key) for pod in self.caches.pods.values())
        return sorted(pod.name for pod in latest if pod is not None and not pod.gated)


@pytest.mark.parametrize("failing", [CUT, BROKEN, SLOW_DOWN], ids=["cut", "broken", "throttled"])
async def test_what_a_gang_that_is_half_in_lacks_is_not_given_to_another_while_the_api_server_fails(
    failing: errors.KubeError,
) -> None:
    """After half a minute two were given back, and the other gang had four for them: two and four held each other up."""
    world = World()
    world.writer.answer_to = lambda name: failing if name in LAST_TWO else None
    async with world.running():
        await asyncio.sleep(200)
        assert world.in_() == ["one-0", "one-1"]
        assert world.tried("two") == set()
        world.writer.answer_to = lambda _name: None
        await asyncio.sleep(60)
        assert world.in_() == [f"one-{number}" for number in range(SIZE)]
        assert world.tried("two") == set()


async def test_a_gang_of_which_nobody_is_in_gives_way_while_the_api_server_fails() -> None:
    world = World()
    world.writer.answer_to = lambda name: SLOW_DOWN if name.startswith("one") else None
    async with world.running():
        await asyncio.sleep(90)
        assert world.in_() == [f"two-{number}" for number in range(SIZE)]


def stepped(at: int, change: Callable[[], None]) -> Callable[[Steps[Any]], Any]:
    """Passes that let everybody else run at each of their steps; at one of them something happens."""
    steps_done = 0

    async def finish(steps: Steps[Any]) -> Any:
        nonlocal steps_done
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            steps_done += 1
            if steps_done == at:
                change()
                for _ in range(10):
                    await asyncio.sleep(0)

    return finish


@pytest.mark.parametrize("at", range(1, STEPS))
async def test_members_that_have_changed_in_the_middle_of_a_pass_are_decided_on_before_others(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes to two members before their lifts are stored: the pass that is under way has looked at their gang."""
    world = World()
    world.writer.answer_to = lambda name: PUT_OFF if name in LAST_TWO else None
    async with world.running():
        assert world.in_() == ["one-0", "one-1"]

        changed: list[int] = []

        def change() -> None:
            for name in LAST_TWO:
                world.shows(member(name, version="3"))
            world.writer.answer_to = lambda _name: None
            changed.append(at)

        monkeypatch.setattr(world.caches.turns, "finish", stepped(at, change))
        for number in range(6):
            world.shows(a_pod(f"large-{number}").gpu(7).card("A").in_queue("q").gated().priority(9))
        await asyncio.sleep(1)
        assert changed, "the pass has as many steps"
        await asyncio.sleep(20)
        assert world.in_() == [f"one-{number}" for number in range(SIZE)]
        assert world.tried("two") == set()


@pytest.mark.parametrize("kubernetes", [False, True])
async def test_lifts_that_were_decided_for_each_member_alone_make_no_gang_begun(kubernetes: bool) -> None:
    """Both PodGroups were known as those of pods that start alone: six were booked, then both needed four at once.

    As few slots are free as can be, so that lifts are looked at one after the other. Taken for begun, the older gang would come
    before a pod of higher priority.
    """
    busy = [
        a_pod(f"busy-{number}").gpu(1).card("A").in_queue("busy").gated()
        for number in range(PER_NAMESPACE - 2)
    ]
    world = World(*busy)
    for second, gang in enumerate(GANGS):
        group = a_group(gang).in_queue("q").created(f"2024-01-01T00:00:0{second}Z").uid(gang)
        known, stored = group.min_member(1).view(), group.min_member(SIZE).build()
        if kubernetes:
            made = a_scheduling_group(gang).created(f"2024-01-01T00:00:0{second}Z").uid(gang)
            known, stored = made.min_count(1).view(), made.min_count(SIZE).build()
            for number in range(SIZE):
                world.shows(member(f"{gang}-{number}", "2", kubernetes=True))
        show(world.caches.kubernetes_groups if kubernetes else world.caches.groups, f"ml/{gang}", known)
        world.writer.stored[f"ml/{gang}"] = stored
    world.writer.latency_s = lambda name: 3.0 if name.startswith("busy") else 0.001
    read = world.writer.get

    async def apart(resource: Resource, name: str, *args: Any, **more: Any) -> Any:
        await asyncio.sleep(1.0 if name == "one" else 1.5)
        return await read(resource, name, *args, **more)

    world.writer.get = apart  # type: ignore[method-assign]
    async with world.running():
        assert world.caches.ledger.used("q", "A") == QUOTA * 1000
        world.shows(a_pod("high").gpu(4).card("A").in_queue("q").gated().priority(9))
        await asyncio.sleep(30)
        assert {"one", "two"} <= {*world.writer.reads}
        assert world.tried("one") | world.tried("two") == set()
        assert world.tried("high") == {"high"}
