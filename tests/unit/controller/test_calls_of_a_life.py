"""What one more pod costs the leader from its creation to its end: calls and requests are counted, no time is taken."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import MOMENT_S, Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from controller.publishing import Publisher
from core.names import CARD_QUOTA_ANNOTATION
from core.objects import Pod, pod
from core.queues.ledger import Ledger
from core.settings import Settings
from hack.bench.store import Store
from kube import metrics as kube_metrics
from kube.client import Json
from kube.events import EventRecorder
from kube.resources import EVENTS, NODES, PODS, QUEUES, Resource
from tests.builders import a_node, a_pod, a_queue
from tests.fakes.apiserver import background
from tests.fakes.counted import CountedLoop, run
from tests.unit.controller.fakes import term

NAMESPACE, NODE, QUEUE, CARD = "ml", "n", "q", "A"
COUNT = 40
PORTIONS = 4
"""Half the pods wait, and are let in bit by bit."""
QUIET = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
"""Conditions of a bound pod that nothing is decided by."""
MOST_CALLS = 7_150
"""It takes 6,250; about a seventh more is what another release of a library may take."""


class Cluster(Store):
    """Beside the API server, everybody else who has to do with a pod: who makes it, the scheduler, the kubelet."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.patches: Counter[str] = Counter()
        """Of each pod, by name."""
        self.events: Counter[str] = Counter()
        """Writes of events about each, by name."""
        self.fill(NODES, [a_node(NODE).card(CARD, count).build()])
        self.fill(QUEUES, [a_queue(QUEUE).cards({CARD: count // 2}).build()])

    async def create(
        self, resource: Resource, body: Json, _namespace: str | None = None, **options: Any
    ) -> Json:
        """See Client.create."""
        self._note(resource, body)
        return await super().create(resource, body, _namespace, **options)

    async def patch(
        self, resource: Resource, name: str, body: Any, namespace: str | None = None, **options: Any
    ) -> Json:
        """See Client.patch."""
        if resource is PODS:
            self.patches[name] += 1
        self._note(resource, body)
        return await super().patch(resource, name, body, namespace, **options)

    def _note(self, resource: Resource, body: Json) -> None:
        if resource is EVENTS and body["regarding"]["kind"] == "Pod":
            self.events[body["regarding"]["name"]] += 1

    async def create_all(self) -> None:
        made = (
            a_pod(f"p{number:03}").gpu(1).card(CARD).in_queue(QUEUE).gated() for number in range(self.count)
        )
        self.tell(self.prepare(PODS, "ADDED", [each.build() for each in made]))
        await asyncio.sleep(3)

    async def quota_is_mistyped(self) -> None:
        """For a moment, in which the first of those who wait does so for another reason: not worth an event."""
        stored = self.stored(QUEUES, QUEUE)
        annotations = stored["metadata"]["annotations"]
        for quota in ("{", annotations[CARD_QUOTA_ANNOTATION]):
            annotations[CARD_QUOTA_ANNOTATION] = quota
            self.tell(self.prepare(QUEUES, "MODIFIED", [stored]))
            await asyncio.sleep(MOMENT_S / 2)

    async def live(self, which: Iterable[str]) -> None:
        """Pods that were lifted are bound, start, succeed and are gone; between that their kubelet has much to say."""
        names = list(which)
        assert all(f"{NAMESPACE}/{name}" in self.lifted for name in names)
        await self.show(names, {"nodeName": NODE}, _said("PodScheduled"))
        for done in range(1, len(QUIET) + 1):
            await self.show(names, {}, _said("PodScheduled", *QUIET[:done]))
        started = [{"name": "main", "started": True, "state": {"running": {}}}]
        await self.show(names, {}, {"phase": "Running", "containerStatuses": started})
        for number in range(len(QUIET)):
            await self.show(names, {}, {"podIPs": [{"ip": f"10.0.0.{each}"} for each in range(number)]})
        ended = [{"name": "main", "started": False, "state": {"terminated": {"exitCode": 0}}}]
        await self.show(names, {}, {"phase": "Succeeded", "containerStatuses": ended})
        self.tell(self.prepare(PODS, "DELETED", [self.stored(PODS, f"{NAMESPACE}/{name}") for name in names]))
        await asyncio.sleep(3)

    async def show(self, names: Iterable[str], spec: Json, status: Json) -> None:
        """The next state of these pods."""
        states = [self.stored(PODS, f"{NAMESPACE}/{name}") for name in names]
        for raw in states:
            raw["spec"].update(spec)
            raw.setdefault("status", {}).update(status)
        self.tell(self.prepare(PODS, "MODIFIED", states))
        await asyncio.sleep(1)

    def stored(self, resource: Resource, key: str) -> Json:
        """The object as it is stored."""
        text = self._collections[resource.plural].find(key)
        assert text is not None
        raw: Json = orjson.loads(text)
        return raw


def _said(*conditions: str) -> Json:
    return {"conditions": [{"type": condition, "status": "True"} for condition in conditions]}


def lives(count: int) -> tuple[Cluster, int]:
    """The cluster after so many lives, and the calls that were made in all."""
    cluster = Cluster(count)
    client: Any = cluster

    async def lead(loop: CountedLoop) -> int:
        caches, metrics = Caches(client, Settings()), Metrics(CollectorRegistry())
        told = kube_metrics.Metrics(CollectorRegistry())
        recorder = EventRecorder(client, "cardquota", "here", metrics=told)
        announcements = Announcements(recorder, history=recorder.recall)
        caches.pods.subscribe(announcements.pod_changed)
        lifter = Lifter(client, caches, announcements, metrics)
        publisher = Publisher(client, caches, announcements, metrics)
        async with (
            background(caches.run()),
            background(recorder.run()),
            background(announcements.run()),
            background(lifter.run(term())),
            background(publisher.run(term())),
        ):
            await asyncio.sleep(5)
            before = loop.calls.made
            await cluster.create_all()
            names = [f"p{number:03}" for number in range(count)]
            portion = count // 2 // PORTIONS
            for first in range(0, count, portion):
                await cluster.quota_is_mistyped()
                await cluster.live(names[first : first + portion])
            assert len(caches.pods) == 0
            return loop.calls.made - before

    return cluster, run(lead)


def test_one_more_pod_costs_a_bounded_number_of_calls_over_its_whole_life() -> None:
    lives(2 * PORTIONS)
    (_, some), (_, twice) = lives(COUNT), lives(2 * COUNT)
    assert (twice - some) / COUNT < MOST_CALLS


def test_each_state_of_a_pod_is_read_once_and_booked_once_where_it_is_decided_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lift is read in the answer to it, and not again when the watch shows it."""
    read, booked = Counter[str](), Counter[str]()
    project, put = pod.project, Ledger.put_pod

    def reading(raw: Json, **options: Any) -> Pod:
        read[raw["metadata"]["name"]] += 1
        return project(raw, **options)

    def booking(self: Ledger, found: Pod) -> None:
        booked[found.name] += 1
        put(self, found)

    monkeypatch.setattr(pod, "project", reading)
    monkeypatch.setattr(Ledger, "put_pod", booking)
    lives(COUNT)
    decided_by = ("created", "lifted", "bound", "started", "succeeded")
    assert (len(read), set(read.values())) == (COUNT, {len(decided_by) + 2 * len(QUIET)})
    assert (len(booked), set(booked.values())) == (COUNT, {len(decided_by)})


def test_a_life_takes_one_patch_of_the_pod_two_events_at_most_and_no_read() -> None:
    """Two of one who has waited, that it waits and that it is let in, whatever it waited for now and then; else none."""
    cluster, _ = lives(COUNT)
    assert (len(cluster.patches), set(cluster.patches.values())) == (COUNT, {1})
    patches = sum(times for request, times in cluster.requests.items() if request.startswith("patch "))
    assert patches <= 2 * COUNT, "with the status of their queue"
    assert (len(cluster.events), max(cluster.events.values())) == (COUNT // 2, 2)
    assert not any(request.startswith("get ") for request in cluster.requests)
