"""What members of a gang hold whose lift was refused is given back between two passes: others may change all the time."""

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from core.objects import Pod
from core.steps import Steps
from kube import errors
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

FORBIDDEN = errors.Forbidden(403, "Forbidden", "somebody's policy", None, None)
BUSY = ("one", "two")
GANGS = 200
STEP_S = 0.0005
"""A pass over both large queues takes more than half a second."""
EVERY_S = 0.1


def member(queue: str, gang: int, number: int, version: int = 0) -> Pod:
    built = a_pod(f"{queue}-{gang}-{number}", namespace="tenant").gpu(1).card("A").in_group(f"{queue}-{gang}")
    built = built.gated().task(f"t{version % 2}")
    return built.put("metadata", "resourceVersion", value=str(version + 1)).view()


class World:
    """Two large queues in which nobody is let in, and a small one with quota for two."""

    def __init__(self) -> None:
        self.caches: Caches = caches([a_node("n").card("A", 500).view()])
        for queue, quota in (("q", 2), *((queue, 1) for queue in BUSY)):
            show(self.caches.queues, queue, a_queue(queue).cards({"A": quota}).view())
        for queue in BUSY:
            for gang in range(GANGS):
                name = f"{queue}-{gang}"
                group = a_group(name, namespace="tenant").in_queue(queue).min_member(2).uid(name).view()
                show(self.caches.groups, group.key, group)
                for number in range(2):
                    self.shows(member(queue, gang, number))
        self.writer = Writer()
        self.announcements = Announcements(Recorder())
        self.metrics = Metrics(CollectorRegistry())
        self.lifter = Lifter(self.writer, self.caches, self.announcements, self.metrics)

    def shows(self, pod: Pod) -> None:
        show(self.caches.pods, pod.key, pod)

    def puts_a_gang_and_one_behind_it(self) -> None:
        group = a_group("g").in_queue("q").min_member(2).view()
        show(self.caches.groups, group.key, group)
        for second, name in enumerate(("g-0", "g-1", "single")):
            built = a_pod(name).gpu(1).card("A").gated().created(f"2024-01-01T00:00:0{second}Z")
            built = built.in_queue("q") if name == "single" else built.in_group("g")
            built = built.put("metadata", "resourceVersion", value="1")
            self.writer.stored[built.view().key] = built.build()
            self.shows(built.view())

    async def changes_both(self) -> None:
        version = 0
        while True:
            version += 1
            for queue in BUSY:
                self.shows(member(queue, GANGS - 1, 0, version))
            await asyncio.sleep(EVERY_S)

    def lifted(self, name: str) -> bool:
        return any(write.name == name for write in self.writer.writes)

    def passes(self) -> float:
        return self.metrics.registry.get_sample_value("cardquota_quota_pass_duration_seconds_count") or 0


async def finish(steps: Steps[Any]) -> Any:
    """Work of which each step takes its time."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(STEP_S)


async def test_what_a_refused_member_held_goes_to_the_next_one_while_two_large_queues_change_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pass over both had no end, and so was nothing given back."""
    world = World()
    world.writer.answer_to = lambda name: FORBIDDEN if name == "g-1" else None
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(1)
        monkeypatch.setattr(world.caches.turns, "finish", finish)
        async with background(world.changes_both()):
            await asyncio.sleep(1)
            world.puts_a_gang_and_one_behind_it()
            await asyncio.sleep(1)
            assert world.lifted("g-1")
            before = world.passes()
            await asyncio.sleep(5)
            assert world.lifted("single")
            assert world.passes() > before + 1, "each is counted"
