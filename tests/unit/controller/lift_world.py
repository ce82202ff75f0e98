"""A lifter over one queue: what it writes is recorded, and answered as the test says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from kube import errors
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

CUT = errors.ConnectionFailed("cut")
BROKEN = errors.ServerError(500, "InternalError", 'failed calling webhook "x.example"', None, None)
GATEWAY = errors.ServerError(504, "Timeout", "a proxy gave up", None, None)
SLOW_DOWN = errors.Throttled(429, "TooManyRequests", "slow down", None, 7.0)
CHANGED = errors.Conflict(409, "Conflict", "changed", None, None)
TESTED = errors.Invalid(422, "Invalid", "a test failed", None, None)
GONE = errors.NotFound(404, "NotFound", "gone", None, None)
FORBIDDEN = errors.Forbidden(403, "Forbidden", "no rights", None, None)


def pod(name: str, second: int = 0, *, version: str = "1", namespace: str = "ml") -> PodBuilder:
    built = a_pod(name, namespace=namespace).gpu(1).card("A").in_queue("q").gated()
    return built.created(f"2024-01-01T00:00:{second:02}Z").put("metadata", "resourceVersion", value=version)


def lifted(name: str, version: str = "2") -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_queue("q").put("metadata", "resourceVersion", value=version)


class World:
    """One queue, pods in order of age; the watch shows what the test says, reads find what the test stores."""

    def __init__(self, *pods: PodBuilder, quota: int = 1, fifo: bool = False) -> None:
        self._fifo = fifo
        self.caches: Caches = caches([a_node("n").card("A", 500).view()], [each.view() for each in pods])
        self.shows_queue(quota)
        self.writer, self.recorder = Writer(), Recorder()
        for each in pods:
            self.stores(each)
        self.metrics = Metrics(CollectorRegistry())
        self.announcements = Announcements(self.recorder)
        self.lifter = Lifter(self.writer, self.caches, self.announcements, self.metrics)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.lifter.run(term()))
        async with background(self.announcements.run()):
            await asyncio.sleep(0.1)
            yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def shows_queue(self, quota: int, state: str = "Open") -> None:
        queue = a_queue("q").cards({"A": quota}).state(state)
        show(self.caches.queues, "q", (queue.fifo() if self._fifo else queue).view())

    def shows(self, built: PodBuilder) -> None:
        show(self.caches.pods, built.view().key, built.view())

    def stores(self, built: PodBuilder) -> None:
        self.writer.stored[built.view().key] = built.build()

    def comes(self, built: PodBuilder) -> None:
        """A pod is created."""
        self.stores(built)
        self.shows(built)

    def passes(self) -> int:
        """How many passes there have been."""
        samples = (sample for metric in self.metrics.pass_seconds.collect() for sample in metric.samples)
        return round(next(sample.value for sample in samples if sample.name.endswith("_count")))

    def names(self) -> list[str]:
        return [write.name for write in self.writer.writes]

    def asked(self) -> list[str]:
        return [trial.name for trial in self.writer.trials]

    def used(self) -> int:
        return self.caches.ledger.used("q", "A") // 1000
