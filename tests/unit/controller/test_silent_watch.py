"""A watch that dies without a word while binds are stored: seen within 15 seconds, and nothing is given away twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.caches import Caches
from controller.metrics import Metrics
from core import reasons
from core.settings import Settings
from kube.resources import NODES, PODS
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.fakes.livesource import LiveSource
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import INDEX, NODE, SETTLED_S, binding, code, records, share
from tests.unit.controller.test_binding import stored as bound

pytestmark = pytest.mark.looptime

NOTICED_S = 15.0


class Cluster:
    """A cluster of one mGPU node with two cards, followed by a leading hook over real informers."""

    def __init__(self, *pods: PodBuilder) -> None:
        self.source = LiveSource()
        self.source.put(NODES, NODE.build())
        for pod in pods:
            self.source.put(PODS, pod.build())
        self.caches = Caches(self.source, Settings())
        self.hook = BindingHook(self.source, self.caches, Settings(), Metrics(CollectorRegistry()))
        self.hook.start(term())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background(self.caches.run()), background(self.hook.run()):
            await self.caches.wait_synced()
            yield

    async def bind(self, pod: PodBuilder) -> str:
        """Binds a pod and has that stored; the card that it was granted."""
        decision = await self.hook.review(binding(pod.view().name))
        self.source.put(PODS, bound(pod, decision).build())
        return records(decision)[INDEX]

    async def refused(self, pod: PodBuilder) -> str:
        return code(await self.hook.review(binding(pod.view().name)))

    def staleness(self) -> float:
        return max(each.staleness_s() or 0.0 for each in (self.caches.pods, self.caches.nodes))

    def seen_bound(self, name: str) -> bool:
        view = self.caches.pods.get(f"ml/{name}")
        return view is not None and view.bound


def whole(*names: str) -> list[PodBuilder]:
    return [share(name, 100) for name in names]


async def test_what_was_stored_behind_a_dead_watch_is_seen_within_fifteen_seconds() -> None:
    a, b, c = whole("a", "b", "c")
    cluster = Cluster(a, b, c)
    async with cluster.running():
        await asyncio.sleep(100)
        cluster.source.cut_off()
        assert await cluster.bind(a) == "0"
        await asyncio.sleep(1)
        assert not cluster.seen_bound("a")
        await asyncio.sleep(NOTICED_S - 1)
        assert cluster.seen_bound("a")
        assert await cluster.bind(b) == "1"
        assert await cluster.refused(c) == reasons.MGPU_NO_ROOM
        cluster.source.remove(PODS, "a", "ml")
        await asyncio.sleep(1)
        assert await cluster.bind(c) == "0"


async def test_while_nobody_answers_no_card_is_granted_twice() -> None:
    """Everything is silent for an hour, reads too; then the world goes on."""
    a, b, c, d = whole("a", "b", "c", "d")
    cluster = Cluster(a, b, c, d)
    async with cluster.running():
        await asyncio.sleep(5)
        cluster.source.cut_off()
        cluster.source.silent = True
        assert (await cluster.bind(a), await cluster.bind(b)) == ("0", "1")
        await asyncio.sleep(NOTICED_S)
        assert cluster.staleness() >= NOTICED_S
        for _ in range(60):
            assert await cluster.refused(c) == reasons.MGPU_NO_ROOM
            await asyncio.sleep(60)
        assert not cluster.seen_bound("a")
        cluster.source.silent = False
        cluster.source.remove(PODS, "b", "ml")
        await asyncio.sleep(90)
        assert cluster.seen_bound("a")
        assert await cluster.bind(d) == "1"


async def test_a_quiet_cluster_costs_one_watch_each_few_seconds_and_no_list() -> None:
    """And nothing is stale in it."""
    cluster = Cluster(*whole("a"))
    async with cluster.running():
        lists, opened = cluster.source.lists, len(cluster.source.opened)
        for _ in range(600):
            await asyncio.sleep(1)
            assert cluster.staleness() <= 12
        watched = [time for resource, time in cluster.source.opened[opened:] if resource == str(PODS)]
        assert cluster.source.lists == lists
        assert 600 / 12 <= len(watched) <= 600 / 10


async def test_a_grant_that_is_settled_by_a_read_is_the_same_that_the_watch_shows_later() -> None:
    """Where the watch is opened anew but shows nothing: what was read stays booked, once, and goes with the pod."""
    a, b = whole("a", "b")
    cluster = Cluster(a, b)
    async with cluster.running():
        await asyncio.sleep(10)
        granted = await cluster.hook.review(binding("a"))
        await asyncio.sleep(SETTLED_S - 1)
        cluster.source.cut_off()
        cluster.source.put(PODS, bound(a, granted).build())
        await asyncio.sleep(3)
        assert not cluster.seen_bound("a")
        assert [pod.name for pod in cluster.caches.ledger.pods_on("m1")] == ["a"]
        await asyncio.sleep(NOTICED_S)
        assert cluster.seen_bound("a")
        assert [pod.name for pod in cluster.caches.ledger.pods_on("m1")] == ["a"]
        cluster.source.remove(PODS, "a", "ml")
        await asyncio.sleep(1)
        assert cluster.caches.ledger.pods_on("m1") == []
