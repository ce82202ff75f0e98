"""Binds that take long to be decided: in slices between which others are served, by the books as they are in the end."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core import reasons
from core.admission.request import Decision
from core.mgpu.ask import NATIVE_BURST_SHARE
from core.mgpu.search import solve
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.ticking import Ticking
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import binding, code
from tests.unit.core.mgpu.cases import a_filling_pod

pytestmark = pytest.mark.looptime

BINDS = 8
HOSTILE_CARDS = 16
ROUNDS = 5
"""Of the loop; in each of them there are five steps of a search."""


class World:
    """Pods of which each takes thousands of search steps on any of these nodes."""

    def __init__(self, *pods: PodBuilder, clock: Ticking) -> None:
        solve.cache_clear()
        self.clock = clock
        nodes = [
            a_node(f"n{number}").mgpu(HOSTILE_CARDS - number, memory=16_384, policy=NATIVE_BURST_SHARE)
            for number in range(BINDS)
        ]
        nodes.append(a_node("wide").mgpu(7, memory=16_384, policy=NATIVE_BURST_SHARE))
        turns, settings = clock.turns, Settings()
        self.caches = caches([node.view() for node in nodes], [pod.view() for pod in pods], settings, turns)
        self.hook = BindingHook(
            Pods(*(pod.build() for pod in pods)), self.caches, settings, Metrics(CollectorRegistry())
        )
        self.hook.start(term())
        show(self.caches.queues, "q", a_queue("q").view())

    async def bind(self, name: str, node: str) -> Decision:
        return await self.hook.review(binding(name, node=node))

    async def searching(self, name: str, node: str) -> "asyncio.Task[Decision]":
        """A bind that is being decided, and will be for a while."""
        asked = asyncio.create_task(self.bind(name, node))
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        assert self.clock.readings
        assert not asked.done()
        return asked


async def test_others_are_served_while_many_binds_are_searched_for() -> None:
    clock = Ticking()
    pods = [a_filling_pod(f"p{n}", HOSTILE_CARDS - n).in_queue("q") for n in range(BINDS)]
    world = World(*pods, clock=clock)
    async with clock.beside():
        answers = await asyncio.gather(*(world.bind(f"p{n}", f"n{n}") for n in range(BINDS)))
    assert {code(answer) for answer in answers} == {reasons.MGPU_NO_ROOM}
    assert clock.readings > BINDS * 50, "each of them in many steps"
    assert clock.longest <= 7


@pytest.mark.parametrize("meanwhile", ["node", "pod"])
async def test_who_is_gone_when_the_search_is_over_is_not_bound(meanwhile: str) -> None:
    clock = Ticking()
    world = World(a_filling_pod("p", 8).in_queue("q"), clock=clock)
    asked = await world.searching("p", "n0")
    if meanwhile == "node":
        show(world.caches.nodes, "n0", None)
    else:
        world.hook.stop()
    answer = await asked
    assert not answer.allowed
    assert code(answer) == {"node": reasons.NODE_NOT_FOUND, "pod": reasons.NO_LEADER}[meanwhile]


async def test_what_others_were_granted_meanwhile_is_not_granted_again() -> None:
    """Alone on the node it finds its cards; not so on what two others have left, who came after it."""
    others = [
        a_pod(f"p{n}").mgpu_policy(NATIVE_BURST_SHARE).mgpu(core=60, memory=9_000).in_queue("q")
        for n in range(2)
    ]
    world = World(*others, a_filling_pod("long", 6).in_queue("q"), clock=Ticking())
    assert (await (await world.searching("long", "wide"))).allowed
    world = World(*others, a_filling_pod("long", 6).in_queue("q"), clock=Ticking())
    long = await world.searching("long", "wide")
    for pod in others:
        assert (await world.bind(pod.view().name, "wide")).allowed
    assert code(await long) == reasons.MGPU_NO_ROOM


async def test_who_cannot_be_decided_in_the_hooks_time_is_refused_until_the_scheduler_tries_again() -> None:
    """Without an answer in time the bind might go through as it is."""
    world = World(a_filling_pod("p", 8).in_queue("q"), clock=Ticking())
    async with world.caches.turns._turn:
        answer = await world.bind("p", "n0")
    assert code(answer) == reasons.BOOKS_UNSETTLED
    assert (await world.bind("p", "n0")).allowed
