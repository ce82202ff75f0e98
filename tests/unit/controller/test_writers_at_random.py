"""The leader's writers while everything comes, changes and goes between any two of their steps, and every answer may fail.

An exception in one of them would end the whole leader. What they leave when it has calmed down is right.
"""

import asyncio
import logging
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.metrics import Metrics
from controller.publishing import Publisher
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from core import names
from core.display.status import published, status_patch
from core.mgpu import records
from core.objects import raw
from core.settings import ReservationSettings, Settings
from kube import errors
from kube.client import Json, PatchType
from kube.lease import Term
from kube.resources import PODS, QUEUES, Resource
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder, QueueBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder

pytestmark = pytest.mark.looptime(start=1_000_000)

NODES = [f"n{number}" for number in range(4)]
QUEUE_NAMES = ["", "q0", "q1", "q2"]
RECORDS = ["", "0", "1", "0,1", "7", "x", "9" * 400, "-1", "0,", "\0"]
QUOTAS = ['{"A": 4}', "{", "[]", "null", '{"A": "many"}', '{"A": 0, "A|B": 3}']
STATUSES: list[dict[str, str]] = [{}, {"A": "1"}, {"cpu": "3"}, {"A": "no number"}, {"B": "9" * 300}]
LIFTED = ["2024-01-01T00:00:00Z", "1969-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "soon"]
FAILURES: list[errors.KubeError] = [
    errors.ConnectionFailed("cut"),
    errors.Throttled(429, "TooManyRequests", "later", None, 3.0),
    errors.ServerError(500, "InternalError", "etcd", None, None),
    errors.Forbidden(403, "Forbidden", "no", None, None),
    errors.Invalid(422, "Invalid", "no", None, None),
]


class Cluster:
    """An API server whose watch is at once, with a storm over it: `changes` is what may happen, at any await."""

    def __init__(self, seed: int) -> None:
        self.rng, self.calm, self.version = Random(seed), False, 0
        self.seen = caches()
        self.pods: dict[str, PodBuilder] = {}
        self.queues: dict[str, QueueBuilder] = {}
        self.nodes: dict[str, NodeBuilder] = {}
        self.changes = [self.node, self.queue, self.pod, self.pod, self.pod, self.edit, self.edit, self.drop]

    def change(self) -> None:
        for _ in range(self.rng.choice((0, 1, 1, 2, 5))):
            self.rng.choice(self.changes)()

    def node(self) -> None:
        name = self.rng.choice(NODES)
        if name in self.nodes and self.rng.random() < 0.4:
            del self.nodes[name]
            show(self.seen.nodes, name, None)
            return
        self.nodes[name] = a_node(name).mgpu(self.rng.choice((1, 2, 4)), memory=16384).card("A", 8)
        show(self.seen.nodes, name, self.nodes[name].view())

    def queue(self) -> None:
        name = self.rng.choice(QUEUE_NAMES[1:])
        if name in self.queues and self.rng.random() < 0.4:
            del self.queues[name]
            show(self.seen.queues, name, None)
            return
        queue = a_queue(name).cards(self.rng.choice(QUOTAS)).allocated(self.rng.choice(STATUSES))
        self.store_queue(name, queue.child_of(self.rng.choice(QUEUE_NAMES)))

    def pod(self) -> None:
        name = f"p{self.rng.randrange(12)}"
        if name in self.pods:
            self.drop(name)
        self.version += 1
        pod = a_pod(name).uid(f"u{self.version}").in_queue(self.rng.choice(QUEUE_NAMES))
        if self.rng.random() < 0.7:
            pod = pod.mgpu(core=self.rng.choice((10, 60, 100, 200)), memory=self.rng.choice((2000, None)))
        else:
            pod = pod.gpu(self.rng.choice((1, 2))).card(self.rng.choice(("A", "A|B", "gone", "|")))
        if self.rng.random() < 0.5:
            pod = pod.owned_by("ReplicaSet", "rs")
        if self.rng.random() < 0.7:
            pod = pod.bound_to(self.rng.choice(NODES), phase="Pending")
        self.store_pod(name, pod.written_by(names.FIELD_MANAGER, self.rng.choice(LIFTED)))

    def edit(self) -> None:
        if not self.pods:
            return
        name, pod = self.rng.choice(sorted(self.pods.items()))
        match self.rng.randrange(6):
            case 0:
                pod = pod.annotation(records.key("main"), self.rng.choice(RECORDS))
            case 1:
                pod = pod.annotation(names.MGPU_MULTIPLE_ANNOTATION, self.rng.choice(("1", "2", "x", "1,1")))
            case 2:
                pod = pod.started()
            case 3:
                pod = pod.terminating()
            case 4:
                pod = pod.phase("Succeeded")
            case _:
                pod = pod.bound_to(self.rng.choice(NODES), phase="Pending")
        self.store_pod(name, pod)

    def drop(self, name: str = "") -> None:
        name = name or (self.rng.choice(sorted(self.pods)) if self.pods else "")
        if self.pods.pop(name, None) is not None:
            show(self.seen.pods, f"ml/{name}", None)

    def store_pod(self, name: str, pod: PodBuilder) -> None:
        self.version += 1
        self.pods[name] = pod.put("metadata", "resourceVersion", value=str(self.version))
        show(self.seen.pods, f"ml/{name}", self.pods[name].view())

    def store_queue(self, name: str, queue: QueueBuilder) -> None:
        self.version += 1
        self.queues[name] = queue.put("metadata", "resourceVersion", value=str(self.version))
        show(self.seen.queues, name, self.queues[name].view())

    # -- what the writers call ----------------------------------------------------------------------------------

    async def weather(self, timeout_s: float) -> None:
        """Something may happen before a request is served; or it hangs, or fails."""
        await asyncio.sleep(0.001)
        if self.calm:
            return
        self.change()
        chance = self.rng.random()
        if chance < 0.1:
            await asyncio.sleep(timeout_s)
            raise errors.ConnectionFailed("timed out")
        if chance < 0.3:
            raise self.rng.choice(FAILURES)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
        timeout_s: float = 10.0,
    ) -> Json:
        assert (patch_type, field_manager) == (PatchType.MERGE, names.FIELD_MANAGER)
        assert not dry_run
        await self.weather(timeout_s)
        if resource is QUEUES:
            self.patch_queue(name, body["status"]["allocated"])
        else:
            assert (resource, namespace, subresource) == (PODS, "ml", None)
            self.patch_pod(name, body["metadata"])
        if not self.calm and self.rng.random() < 0.2:
            self.change()
            raise errors.ConnectionFailed("the answer is lost")
        return {}

    def patch_queue(self, name: str, keys: dict[str, str | None]) -> None:
        if name not in self.queues:
            raise errors.NotFound(404, "NotFound", name, None, None)
        stored = {**self.queues[name].view().allocated, **keys}
        kept = {key: text for key, text in stored.items() if text is not None}
        self.store_queue(name, self.queues[name].allocated(kept))

    def patch_pod(self, name: str, metadata: Json) -> None:
        pod = self.matching(name, metadata["uid"], metadata["resourceVersion"])
        annotations = {**pod.raw["metadata"].get("annotations", {}), **metadata["annotations"]}
        kept = {key: text for key, text in annotations.items() if text is not None}
        self.store_pod(name, pod.put("metadata", "annotations", value=kept))

    def matching(self, name: str, uid: str | None, version: str | None) -> PodBuilder:
        if name not in self.pods:
            raise errors.NotFound(404, "NotFound", name, None, None)
        view = self.pods[name].view()
        if (view.uid, view.resource_version) != (uid, version):
            raise errors.Conflict(409, "Conflict", name, None, None)
        return self.pods[name]

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        assert (resource, namespace) == (PODS, "ml")
        await self.weather(timeout_s)
        view = self.matching(name, uid, resource_version).view()
        assert not view.bound
        assert view.owner is not None
        self.drop(name)
        return {}


class Leading:
    """The three writers over a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        settings = Settings(reservation=ReservationSettings(warn_after_s=5, evict_after_s=20))
        metrics, recorder = Metrics(CollectorRegistry()), Recorder()
        announcements = Announcements(recorder)
        self.publisher = Publisher(cluster, cluster.seen, announcements, metrics)
        self.repairer = Repairer(cluster, cluster.seen, recorder, metrics, settings)
        start = raw.timestamp(LIFTED[0])
        self.watch = ReservationWatch(cluster, cluster.seen, announcements, metrics, settings, lambda: start)

    async def lead(self, term: Term) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.publisher.run(term))
            tasks.create_task(self.repairer.run(term))
            tasks.create_task(self.watch.run(term))


async def for_a_while(leading: Leading, cluster: Cluster, seconds: float) -> None:
    """Leads for so long, in the storm until it is calm; an exception of any writer comes out of here."""
    loop = asyncio.get_running_loop()
    end, term = loop.time() + seconds, Term(1, loop.time, loop.time() + seconds)
    work = asyncio.create_task(leading.lead(term))
    while loop.time() < end and not work.done():
        await asyncio.wait(
            {work}, timeout=min(cluster.rng.choice((0.0, 0.001, 0.05, 1.0)), end - loop.time())
        )
        if not cluster.calm:
            cluster.change()
    work.cancel()
    await asyncio.wait({work})
    if not work.cancelled():
        work.result()


def wrong(cluster: Cluster) -> dict[str, object]:
    """The queues whose status is not what is in the books."""
    ledger = cluster.seen.ledger
    found = {}
    for name, queue in ledger.queues.items():
        account = ledger.accounts.get(name)
        wanted = {**published(account.allocated if account else {}), **ledger.devices.published(queue)}
        found[name] = status_patch(queue, wanted)
    return {name: patch for name, patch in found.items() if patch is not None}


@pytest.mark.parametrize("seed", range(6))
async def test_nothing_ends_the_writers_and_what_they_leave_is_right(seed: int) -> None:
    logging.disable(logging.ERROR)
    try:
        cluster = Cluster(seed)
        for name in NODES[:2]:
            cluster.nodes[name] = a_node(name).mgpu(2, memory=16384).card("A", 8)
            show(cluster.seen.nodes, name, cluster.nodes[name].view())
        leading = Leading(cluster)
        for _ in range(3):
            await for_a_while(leading, cluster, 25)
            for _ in range(20):
                cluster.change()
        cluster.calm = True
        await for_a_while(leading, cluster, 700)
    finally:
        logging.disable(logging.NOTSET)
    assert wrong(cluster) == {}
    assert leading.repairer._repairs == {}
    assert not [pod for pod in leading.watch.late() if pod.owner is not None]
