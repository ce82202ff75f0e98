"""Binds that take long to be decided: in slices between which others are served, by the books as they are in the end."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from controller.precedence import Precedence
from core import reasons
from core.admission.request import Decision
from core.mgpu.ask import NATIVE_BURST_SHARE
from core.mgpu.pieces import Pieces
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
SMALL = 40
"""Pods that have room beside the one that takes long."""
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


class Overtaken(World):
    """One that takes long, and others on its node whose binds make it another question, each after some rounds."""

    def __init__(self) -> None:
        self.small = [
            a_pod(f"s{n}").mgpu_policy(NATIVE_BURST_SHARE).mgpu(core=1, memory=10).in_queue("q")
            for n in range(SMALL)
        ]
        super().__init__(*self.small, a_filling_pod("long", 6).in_queue("q"), clock=Ticking())
        self.granted = 0

    async def grant_one(self) -> None:
        assert (await self.bind(f"s{self.granted}", "n7")).allowed
        self.granted += 1
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    async def until_it_goes_first(self) -> "asyncio.Task[Decision]":
        long = await self.searching("long", "n7")
        while not self.hook._precedence.waits("n7", Pieces()):
            await self.grant_one()
        return long


async def test_a_long_search_ends_though_others_are_granted_on_its_node_all_the_time() -> None:
    """Each of them makes it another question, whose answer is begun anew."""
    world = Overtaken()
    async with world.clock.beside():
        long = await world.searching("long", "n7")
        while not long.done():
            await world.grant_one()
        assert long.result().allowed
    assert 4 < world.granted < SMALL, "nobody waits for it at first"
    assert world.clock.longest <= 7


async def test_only_those_on_its_node_wait_for_one_that_goes_first() -> None:
    world = Overtaken()
    long = await world.until_it_goes_first()
    assert (await world.bind(f"s{SMALL - 1}", "n6")).allowed
    assert not long.done()
    assert (await world.bind(f"s{SMALL - 2}", "n7")).allowed
    assert long.done()


async def test_nobody_waits_for_one_that_has_gone_away() -> None:
    world = Overtaken()
    long = await world.until_it_goes_first()
    long.cancel()
    await world.grant_one()
    with pytest.raises(asyncio.CancelledError):
        await long


async def test_who_waits_is_told_though_the_one_that_goes_first_needs_several_searches() -> None:
    precedence, first, other = Precedence(), Pieces(), Pieces()
    precedence.claim("n", first)
    waiting = asyncio.create_task(precedence.over("n"))
    await asyncio.sleep(0)
    precedence.claim("n", first)
    precedence.claim("n", other)
    precedence.end("n", other)
    assert precedence.waits("n", other), "whose claim came second"
    assert not precedence.waits("n", first)
    precedence.end("n", first)
    await asyncio.wait_for(waiting, 1)
    assert not precedence.waits("n", other)
