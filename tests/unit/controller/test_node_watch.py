"""The leader's watch over the cards of nodes: what costs somebody cards is an event on the node, once, and a number."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import MOMENT_S, Announcements
from controller.discovery import SETTLE_S, DiscoveryLog, NodeWatch
from core import reasons
from tests.builders import a_node
from tests.builders.objects import NodeBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder

pytestmark = pytest.mark.looptime
BARE = a_node("n").allocatable("amd.com/gpu", 8)
WHOLE = BARE.label("amd.com/gpu.product-name", "MI300X")
EMPTY = WHOLE.allocatable("amd.com/gpu", 0)


class World:
    def __init__(self, *nodes: NodeBuilder) -> None:
        self.caches = caches([node.view() for node in nodes], [])
        self.recorder = Recorder()
        self.announcements = Announcements(self.recorder)
        self.watch = NodeWatch(self.caches, self.announcements)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each) for each in (self.watch.run(), self.announcements.run())]
        await asyncio.sleep(0)
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)

    def show(self, node: NodeBuilder | None) -> None:
        show(self.caches.nodes, "n", None if node is None else node.view())

    async def later(self, seconds: float = SETTLE_S + MOMENT_S + 1) -> list[tuple[str, str]]:
        await asyncio.sleep(seconds)
        return [event[:2] for event in self.recorder.emitted]


async def test_an_accelerator_without_card_is_said_on_the_node_once() -> None:
    world = World(BARE)
    async with world.running():
        assert await world.later() == [("Node n", reasons.ACCELERATOR_WITHOUT_CARD)]
        assert "amd.com/gpu is offered and gives no card" in world.recorder.emitted[0][2]
        for beat in range(5):
            world.show(BARE.label("heartbeat", str(beat)))
            assert len(await world.later()) == 1


async def test_a_node_whose_labeller_comes_up_in_time_is_not_mentioned() -> None:
    world = World()
    async with world.running():
        world.show(BARE)
        await asyncio.sleep(SETTLE_S / 2)
        world.show(WHOLE)
        assert await world.later() == []


async def test_what_was_mended_may_be_said_again() -> None:
    world = World(BARE)
    async with world.running():
        assert len(await world.later()) == 1
        world.show(EMPTY)
        assert (await world.later())[1:] == [("Node n", reasons.CARD_LABELS_CONTRADICT)]
        world.show(WHOLE)
        await world.later()
        world.show(BARE)
        assert (await world.later())[2:] == [("Node n", reasons.ACCELERATOR_WITHOUT_CARD)]


async def test_whoever_does_not_lead_says_nothing() -> None:
    world = World(BARE)
    async with world.running():
        pass
    world.show(BARE.label("x", "y"))
    assert await world.later() == []


def test_the_nodes_are_counted_by_reason() -> None:
    world, registry = World(), CollectorRegistry()
    log = DiscoveryLog(world.caches.ledger.inventory, registry)
    world.caches.nodes.subscribe(log.on_node)

    def alarming() -> list[float | None]:
        labels = [reasons.ACCELERATOR_WITHOUT_CARD, reasons.CARD_LABELS_CONTRADICT]
        return [registry.get_sample_value("cardquota_node_card_alarms", {"reason": each}) for each in labels]

    seen = []
    for node in (BARE, EMPTY, WHOLE, BARE, None):
        world.show(node)
        seen.append(alarming())
    assert seen == [[1, 0], [0, 1], [0, 0], [1, 0], [0, 0]]
