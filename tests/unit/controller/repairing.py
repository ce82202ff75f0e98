"""A leader that repairs the records of bound pods, and a store that shows what it writes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from controller.repair import Repairer
from core import names
from core.mgpu import records
from core.settings import Settings
from kube import errors
from kube.lease import Term
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import Recorder, Writer, term
from tests.unit.controller.test_binding import binding

INDEX = records.key("main")


CONFLICT = errors.Conflict(409, "Conflict", "changed", None, None)


def bound(name: str = "p", core: int = 60, record: str | None = None, *, version: int = 1) -> PodBuilder:
    """Bound to m1 and not started, with 2000 MiB or whole cards."""
    pod = a_pod(name).mgpu(core=core, memory=2000 if core < 100 else None).bound_to("m1", phase="Pending")
    if record is not None:
        pod = pod.annotation(INDEX, record).annotation(names.ASSUMED_ANNOTATION, "true")
    return pod.put("metadata", "resourceVersion", value=str(version))


class World:
    """A node of two cards, a repairer and a binding hook over the same caches."""

    def __init__(self, *pods: PodBuilder, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.caches = caches([a_node("m1").mgpu(2, memory=16384).view()], [p.view() for p in pods], settings)
        self.writer, self.recorder, self.registry = Writer(), Recorder(), CollectorRegistry()
        metrics = Metrics(self.registry)
        self.repairer = Repairer(self.writer, self.caches, self.recorder, metrics, settings)
        self.hook = BindingHook(Pods(), self.caches, settings, metrics)
        self.hook.start(term())

    @asynccontextmanager
    async def leading(self, led: Term | None = None) -> AsyncIterator[None]:
        task = asyncio.create_task(self.repairer.run(led or term()))
        await asyncio.sleep(0.1)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        self.caches.give_back()

    def shows(self, *pods: PodBuilder) -> None:
        for pod in pods:
            show(self.caches.pods, pod.view().key, pod.view())

    def written(self) -> list[tuple[str, str]]:
        """Name and index of `main` of each write."""
        return [(w.name, w.body["metadata"]["annotations"][INDEX]) for w in self.writer.writes]

    def without(self, *names: str, node: str = "m1") -> None:
        """Has pods appear on a node, bound and without records."""
        show(self.caches.nodes, node, a_node(node).mgpu(2, memory=16384).view())
        self.shows(*(bound(name, 1).bound_to(node, phase="Pending") for name in names))

    def said(self) -> list[tuple[str, str]]:
        return [event[:2] for event in self.recorder.emitted]

    def wrong(self, kind: str) -> float | None:
        return self.registry.get_sample_value("cardquota_mgpu_irregularities", {"kind": kind})

    async def bind(self, name: str) -> str:
        """The cards that the hook grants; empty when it refuses."""
        decision = await self.hook.review(binding(name))
        return decision.patch[0].value[INDEX] if decision.patch else ""
