"""A store of events that can be slow, refuse or lose answers, for tests of the recorder."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from kube import errors
from kube.client import JsonPatch, PatchType
from kube.events import EventRecorder, Reference
from kube.listing import Page
from kube.metrics import Metrics
from kube.resources import ALL, PODS, Resource, Scope

Json = dict[str, Any]


POD = Reference.of(PODS, "p", "a", "uid-1")


NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Sink:
    """Takes events as an API server does, some time after they were sent, and may refuse some or hang with some."""

    def __init__(self, latency_s: float = 0.01) -> None:
        self.latency_s = latency_s
        self.created: list[tuple[str | None, Json]] = []
        self.patched: list[tuple[str, Json]] = []
        self.sent_at: list[float] = []
        self.refusals: list[errors.KubeError] = []
        self.refuses: Callable[[Json], errors.KubeError | None] = lambda _: None
        self.hangs: Callable[[Json], bool] = lambda _: False
        self.stored: list[Json] = []
        self.list_s = 0.0
        self.list_fails: Callable[[], errors.KubeError | None] = lambda: None
        self.list_stops: Callable[[float], Awaitable[None]] | None = None
        """What happens after the first page, told for how long the next one is waited for."""
        self.selectors: list[str | None] = []

    async def create(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 5.0
    ) -> Json:
        await self._answer(body, timeout_s)
        assert str(resource) == "events.events.k8s.io"
        if body["metadata"]["name"] in {each["metadata"]["name"] for _, each in self.created}:
            raise errors.AlreadyExists(409)
        self.created.append((namespace, body))
        return body

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Json | JsonPatch,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
        timeout_s: float = 5.0,
    ) -> Json:
        assert isinstance(body, dict)
        assert not dry_run
        assert (patch_type, str(resource), bool(namespace)) == (
            PatchType.MERGE,
            "events.events.k8s.io",
            True,
        )
        await self._answer(body, timeout_s)
        self.patched.append((name, body))
        return body

    async def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = 250,
        timeout_s: float = 5.0,
    ) -> AsyncGenerator[Page]:
        assert (scope.namespace, bool(resource)) == (None, True)
        self.selectors.append(scope.field_selector)
        if (fails := self.list_fails()) is not None:
            raise fails
        for first in range(0, len(self.stored), limit):
            await asyncio.sleep(self.list_s)
            yield Page(self.stored[first : first + limit], "1")
            if self.list_stops is not None:
                await self.list_stops(timeout_s)

    async def _answer(self, body: Json, timeout_s: float) -> None:
        self.sent_at.append(asyncio.get_running_loop().time())
        if self.hangs(body):
            await asyncio.sleep(timeout_s)
            raise errors.ConnectionFailed("timed out")
        await asyncio.sleep(self.latency_s)
        refusal = self.refusals.pop(0) if self.refusals else self.refuses(body)
        if refusal is not None:
            raise refusal

    @property
    def notes(self) -> Sequence[str]:
        return [body["note"] for _, body in self.created]

    @property
    def about(self) -> Sequence[str]:
        return [body["regarding"]["name"] for _, body in self.created]


def stored(number: int, note: str = "note", **fields: Any) -> Json:
    """An event as the API server has it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": f"p{number}",
        "namespace": "a",
        "uid": f"uid-a-{number}",
    }
    return {
        "metadata": {"name": f"p{number}.x", "creationTimestamp": "2029-12-31T23:50:00Z"},
        "regarding": pod,
        "type": "Warning",
        "reason": "R",
        "note": note,
        "action": "A",
        "eventTime": "2029-12-31T23:50:00.000000Z",
    } | fields


def recorder_of(sink: Sink, **options: Any) -> tuple[EventRecorder, CollectorRegistry]:
    metrics = Metrics(CollectorRegistry())
    made = EventRecorder(
        sink,
        "cardquota.io/controller",
        "host-1",
        now=lambda: NOW,
        rng=Random(1),
        metrics=metrics,
        **options,
    )
    return made, metrics.registry


def dropped(registry: CollectorRegistry, cause: str) -> float | None:
    return registry.get_sample_value("cardquota_events_dropped_total", {"cause": cause})


def queued(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("cardquota_events_queued")


def pods(count: int, namespace: str = "a") -> list[Reference]:
    return [Reference.of(PODS, f"p{n}", namespace, f"uid-{namespace}-{n}") for n in range(count)]
