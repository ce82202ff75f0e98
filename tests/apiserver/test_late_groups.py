"""PodGroups that come late, go and come anew, or cannot be watched for a while: no gang is ever left in part.

The controller's parts run in this process, beside the real API server, so that what the watch of PodGroups shows can be
late or fail. Nobody binds: what is lifted stays lifted. CARDQUOTA_GANG_ROUNDS is how many times the first story is done, many
side by side; the others a quarter as often.
"""

import asyncio
import json
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from core import names
from core.settings import Settings
from hack.controlplane import ControlPlane
from hack.install import Installation
from kube import errors
from kube.client import Client
from kube.listing import Page, WatchEvent, Watching
from kube.resources import PODGROUPS, PODS, QUEUES, Resource, Scope
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import Object, card_pod, in_group, podgroup, queue
from tests.fakes.apiserver import background
from tests.unit.controller.fakes import Recorder, term

ROUNDS = int(os.environ.get("CARDQUOTA_GANG_ROUNDS", "200"))
SIDE_BY_SIDE = 24
LATEST_S = 2.0
LAG_S = 0.05
REST_S = 40.0
PAUSE_S = 0.1
SIZE, QUOTA = 4, 6


@pytest.fixture(scope="module")
def definitions(control_plane: ControlPlane) -> Iterator[None]:
    """The definitions of Queue and PodGroup, and none of the processes."""
    values = {"policies": {"enabled": False}}
    with Installation(control_plane, values=values, webhook=False, controller=0):
        yield


@pytest.fixture
def card(control_plane: ControlPlane, definitions: None, namespace: str) -> Iterator[str]:
    assert definitions is None
    cluster = Cluster(control_plane, namespace)
    yield cluster.add_card()
    cluster.close()


class LateGroups:
    """Lists and watches as the client does; what is about PodGroups comes late, or fails as often as it is told to."""

    def __init__(self, client: Client, rng: Random) -> None:
        self._client = client
        self._rng = rng
        self.refusing_lists = deque[errors.KubeError]()
        self.refusing_watches = deque[errors.KubeError]()
        self.shown = asyncio.Event()
        """Cleared while nothing of what happens to PodGroups is to be seen."""
        self.shown.set()

    async def list(self, resource: Resource, *args: Any, **options: Any) -> AsyncGenerator[Page]:
        if resource == PODGROUPS and self.refusing_lists:
            raise self.refusing_lists.popleft()
        async for page in self._client.list(resource, *args, **options):
            yield page

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        of_groups = resource == PODGROUPS
        if of_groups and self.refusing_watches:
            raise self.refusing_watches.popleft()
        # Short, so that the next one begins soon, and may fail.
        short = replace(asked, timeout_s=min(1.0, asked.timeout_s)) if of_groups else asked
        async for event in self._client.watch(resource, short):
            if of_groups:
                await asyncio.sleep(self._rng.uniform(0, LAG_S))
                await self.shown.wait()
            yield event


class World:
    """A controller, and two gangs of four in a queue of six for each round, all in one namespace."""

    def __init__(
        self, client: Client, source: LateGroups, caches: Caches, metrics: Metrics, namespace: str, card: str
    ) -> None:
        self.client, self.source, self.caches, self.metrics = client, source, caches, metrics
        self.namespace, self.card = namespace, card
        self.rng = Random(7)
        self.queues: list[str] = []

    async def queue(self) -> str:
        name = unique("q")
        await self.client.create(QUEUES, queue(name, json.dumps({self.card: QUOTA})))
        self.queues.append(name)
        return name

    async def group(self, gang: str, in_queue: str, after_s: float = 0.0, size: int = SIZE) -> None:
        await asyncio.sleep(after_s)
        await self.client.create(PODGROUPS, podgroup(gang, in_queue, size), self.namespace)

    async def pods(self, gang: str, in_queue: str, after_s: float = 0.0) -> None:
        await asyncio.sleep(after_s)
        for number in range(SIZE):
            await self.client.create(PODS, self._pod(gang, number, in_queue), self.namespace)

    def _pod(self, gang: str, number: int, in_queue: str) -> Object:
        gate = [{"name": names.GATE}]
        made = card_pod(
            f"{gang}-{number}", self.card, in_queue, schedulerName="volcano", schedulingGates=gate
        )
        (pod,) = in_group(gang, made)
        return pod

    async def lifted(self) -> dict[str, Counter[str]]:
        """By queue and gang, how many members have no gate; of all that is stored now."""
        found: dict[str, Counter[str]] = {name: Counter() for name in self.queues}
        async for page in self.client.list(PODS, Scope(self.namespace)):
            for pod in page.items:
                name = pod["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION]
                if not pod["spec"].get("schedulingGates"):
                    found[name][pod["metadata"]["annotations"][names.GROUP_NAME_ANNOTATION]] += 1
        return found

    async def rest(self) -> None:
        """Returns when in each queue one gang is lifted whole, and the controller has seen all there is to see."""
        for name in self.queues:
            await self.until_lifted(name)
        await self.caches.catch_up()
        fence = await self.queue()
        await asyncio.gather(self.group(f"{fence}-1", fence), self.pods(f"{fence}-1", fence))
        await self.until_lifted(fence)

    async def until_lifted(self, name: str) -> None:
        """Returns when the controller has seen that as many pods of a queue are lifted as a gang has members."""
        keys = [f"{self.namespace}/{name}-{gang}-{number}" for gang in (1, 2) for number in range(SIZE)]
        for _ in range(round(REST_S / PAUSE_S)):
            pods = [self.caches.pods.get(key) for key in keys]
            if sum(pod is not None and not pod.gated for pod in pods) >= SIZE:
                return
            await asyncio.sleep(PAUSE_S)
        pytest.fail(f"nothing is lifted in {name}: {await self.lifted()}")

    async def check(self) -> None:
        """One gang is in, and nothing of the other one."""
        halves = {
            name: dict(found) for name, found in (await self.lifted()).items() if [*found.values()] != [SIZE]
        }
        assert halves == {}, f"gangs that are lifted in part; {self.writes()}"

    def writes(self) -> dict[str, float]:
        """What became of the writes of lifts: where some were given up, the machine was too slow for this test."""
        outcomes = ("done", "refused", "retried")
        return {outcome: self.metrics.lifts.labels(outcome)._value.get() for outcome in outcomes}


@pytest.fixture
async def world(control_plane: ControlPlane, namespace: str, card: str) -> AsyncIterator[World]:
    async with await Client.connect(control_plane.admin_kubeconfig) as client:
        source = LateGroups(client, Random(1))
        caches = Caches(source, Settings())
        metrics = Metrics(CollectorRegistry())
        lifter = Lifter(client, caches, Announcements(Recorder()), metrics)
        async with background(caches.run()):
            await caches.wait_synced()
            async with background(lifter.run(term())):
                yield World(client, source, caches, metrics, namespace, card)


async def side_by_side(*rounds: Any) -> None:
    """Runs the rounds, so many at a time."""
    slots = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(work: Any) -> None:
        async with slots:
            await work

    await asyncio.gather(*map(one, rounds))


async def two_late_gangs(world: World, number: int) -> None:
    """Two PodGroups and the pods of each in every order, up to two seconds apart."""
    name = await world.queue()
    one, two = f"{name}-1", f"{name}-2"
    latest = LATEST_S * (number % 5) / 4
    moments = sorted(world.rng.uniform(0, latest) for _ in range(4))
    orders = [*permutations(range(4))]
    of = [moments[place] for place in orders[number % len(orders)]]
    await asyncio.gather(
        world.group(one, name, of[0]),
        world.group(two, name, of[1]),
        world.pods(one, name, of[2]),
        world.pods(two, name, of[3]),
    )


async def a_job_restarts(world: World, number: int) -> None:
    """The PodGroup of a gang that is in goes, and its pods; both come anew, with a gap, in every order."""
    name = await world.queue()
    one, two = f"{name}-1", f"{name}-2"
    await asyncio.gather(world.group(one, name), world.pods(one, name))
    await world.until_lifted(name)
    await asyncio.gather(world.group(two, name), world.pods(two, name))
    gap_s = world.rng.uniform(0, 0.2)

    async def group() -> None:
        await asyncio.sleep(gap_s if number % 3 == 0 else 0)
        await world.client.delete(PODGROUPS, one, world.namespace)
        await world.group(one, name, gap_s)

    async def members() -> None:
        await asyncio.sleep(gap_s if number % 3 == 1 else 0)
        for place in range(SIZE):
            await world.client.delete(PODS, f"{one}-{place}", world.namespace, grace_period_s=0)
        await world.pods(one, name)

    await asyncio.gather(group(), members())


async def made_anew_unseen(world: World, name: str, number: int) -> None:
    """The PodGroups of two pods alone become those of two gangs, which nothing shows but a read."""
    for gang in (f"{name}-1", f"{name}-2"):
        await world.client.delete(PODGROUPS, gang, world.namespace)
        await world.group(gang, name)
    first, second = (f"{name}-1", f"{name}-2") if number % 2 else (f"{name}-2", f"{name}-1")
    await asyncio.gather(world.pods(first, name), world.pods(second, name, world.rng.uniform(0, 0.2)))


async def test_two_gangs_whose_podgroups_come_late_in_every_order(world: World) -> None:
    await side_by_side(*(two_late_gangs(world, number) for number in range(ROUNDS)))
    await world.rest()
    await world.check()


async def test_podgroups_that_are_deleted_and_made_anew_under_gangs_that_are_in(world: World) -> None:
    rounds = max(8, ROUNDS // 4)
    await side_by_side(*(a_job_restarts(world, number) for number in range(rounds)))
    await world.rest()
    await world.check()


async def test_a_watch_of_podgroups_that_fails(world: World) -> None:
    """With 500, which says nothing about what is there, and with 404, which seems to say that there are none."""
    faults = world.source
    for failing in (errors.ServerError(500, "InternalError"), errors.NotFound(404, "NotFound")):
        faults.refusing_watches.append(failing)
        faults.refusing_lists.append(failing)
    await side_by_side(*(two_late_gangs(world, number) for number in range(max(8, ROUNDS // 4))))
    await side_by_side(*(a_job_restarts(world, number) for number in range(4)))
    await world.rest()
    assert not faults.refusing_watches
    assert not faults.refusing_lists
    await world.check()


async def test_podgroups_that_are_shown_as_they_were_when_each_pod_was_one_of_its_own(world: World) -> None:
    """The watch is so late that it shows nothing of the gangs before they are in."""
    rounds = [await world.queue() for _ in range(max(8, ROUNDS // 4))]
    groups = [f"{name}-{gang}" for name in rounds for gang in (1, 2)]
    for gang in groups:
        await world.group(gang, gang.rsplit("-", 1)[0], size=1)
    await world.caches.catch_up()
    assert all(world.caches.groups.get(f"{world.namespace}/{gang}") for gang in groups)
    world.source.shown.clear()
    await side_by_side(*(made_anew_unseen(world, name, number) for number, name in enumerate(rounds)))
    for name in rounds:
        await world.until_lifted(name)
    await world.check()
    world.source.shown.set()
    await world.rest()
    await world.check()
