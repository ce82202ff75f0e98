"""What the usage over time is kept in, and a process that sums it up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.caches import Caches
from controller.metrics import Metrics
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from core.objects import Pod
from core.usage.checkpoint import Checkpoint, decode
from core.usage.sums import What
from kube import errors
from kube.client import Json
from kube.informer import Informer
from kube.lease import Term
from kube.resources import Resource
from tests.builders import a_node, a_pod, a_queue
from tests.unit.controller.cluster import caches, show

BEGAN = 1_767_225_600
"""2026-01-01, when pods of the builders are created."""


class Place:
    """One ConfigMap, as an API server keeps it."""

    def __init__(self) -> None:
        self.stored: Json | None = {
            "metadata": {"name": "cardquota-usage", "namespace": "ns", "resourceVersion": "1"}
        }
        self.fails: errors.KubeError | None = None
        self.loses_answers = False
        self.writes: list[float] = []

    async def get(
        self, _: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        if self.fails is not None:
            raise self.fails
        if self.stored is None:
            raise errors.NotFound(404, "NotFound", f"{name} in {namespace}", None, timeout_s)
        return self.stored

    async def replace(
        self, _: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        if self.fails is not None:
            raise self.fails
        if self.stored is None:
            raise errors.NotFound(404, "NotFound", str(namespace))
        version = self.stored["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != version:
            raise errors.Conflict(409, "Conflict", "changed", None, timeout_s)
        self.put(body)
        self.writes.append(asyncio.get_running_loop().time())
        if self.loses_answers:
            raise errors.ConnectionFailed("no answer")
        assert self.stored is not None
        return self.stored

    def put(self, body: Json) -> None:
        """What anybody may do to it; its labels are not ours to change."""
        assert self.stored is not None
        if sum(len(key) + len(text.encode()) for key, text in body["data"].items()) > 1 << 20:
            raise errors.Invalid(422, "Invalid", "data: Too long: may not be more than 1048576 bytes")
        version = str(int(self.stored["metadata"]["resourceVersion"]) + 1)
        self.stored = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}

    def checkpoint(self) -> Checkpoint:
        assert self.stored is not None
        found = decode(self.stored["data"], self.stored["binaryData"])
        assert found is not None
        return found


class Replica:
    """A process whose clock is that of the loop, or so many seconds ahead; `shows` puts a pod into its watch."""

    def __init__(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        self.caches: Caches = caches([a_node("n").card("A", 8).view()])
        self.caches.ledger.put_queue(a_queue("q").cards({"A": 8}).view())
        self.metrics = Metrics(CollectorRegistry())
        self.ahead_s = 0
        self.follower = UsageFollower(self.caches, lambda: int((BEGAN + clock() + self.ahead_s) * 1_000_000))
        self.keeper = UsageKeeper(place, self.caches, self.follower, self.metrics, "ns")
        self.registry, self.leading = CollectorRegistry(), True
        self.registry.register(self.keeper.counters(lambda: self.leading))
        self.heard_s = 0.0
        monkeypatch.setattr(Informer, "staleness_s", lambda _: self.heard_s)

    def shows(self, pod: Any) -> None:
        view: Pod = pod.view()
        show(self.caches.pods, view.key, view)

    @asynccontextmanager
    async def led(self, valid: bool = True) -> AsyncIterator[None]:
        self.follower.courses.settled = True
        self.follower.settled.set()
        loop = asyncio.get_running_loop()
        term = Term(1, loop.time, loop.time() + 1e9 if valid else -1.0)
        running = asyncio.create_task(self.keeper.run(term))
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait([running])

    def counter(self) -> float:
        lines = generate_latest(self.registry).decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("cardquota_card_seconds_total{")
        )


def clock() -> float:
    return asyncio.get_running_loop().time()


def bound(at: int) -> Any:
    """Two cards since then."""
    when = f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z"
    pod = (
        a_pod("p")
        .gpu(2)
        .card("A")
        .charged("q")
        .assigned({"A": 2})
        .bound_to("n")
        .created("2026-01-01T00:00:00Z")
    )
    return pod.condition("PodScheduled", "True", when)


def used(place: Place) -> int:
    return sum(amounts[What.USED] for amounts in place.checkpoint().sums.total.values()) // 1000
