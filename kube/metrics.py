"""The metric objects of the packages below `kube`, and the page on which a process shows its registry.

One holder instead of module-level counters: two processes in one interpreter (tests, the demo) keep their numbers
apart by passing a registry each. Labels are bounded: no pod, node or object name ever becomes one.

The page is made in steps: prometheus_client renders a registry in one go, half a second for the series of two thousand queues.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, Literal

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric, Sample
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from core.steps import Steps
from kube import answers
from kube.turns import Turns

Encoder = Callable[[Collector], bytes]
_ESCAPING: Final = re.compile(r"escaping=(?:dots|values)\b")
"""Ways to write names beyond letters, digits and underscores. There are none of these here, so nothing has to be escaped."""


class Metrics:
    """The metrics of API client, informers, event loop, leader election, events and serving certificates."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self.api_requests = Counter(
            "cardquota_api_requests_total",
            "Requests to the API server; code is the HTTP status, or `error` where no answer came.",
            ("verb", "resource", "code"),
            registry=registry,
        )
        self.api_seconds = Histogram(
            "cardquota_api_request_duration_seconds",
            "Time until the answer of the API server was read; watches are left out.",
            ("verb", "resource"),
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self._informers(registry)
        self._event_loop(registry)
        self._others(registry)

    def _informers(self, registry: CollectorRegistry) -> None:
        self.lists = Counter(
            "cardquota_informer_lists_total",
            "Complete lists, the first one included.",
            ("resource",),
            registry=registry,
        )
        self.watches = Counter(
            "cardquota_informer_watches_total",
            "Watches started.",
            ("resource",),
            registry=registry,
        )
        self.watch_failures = Counter(
            "cardquota_informer_failures_total",
            "Lists and watches that failed, by the kind of failure.",
            ("resource", "failure"),
            registry=registry,
        )
        self.informer_objects = Gauge(
            "cardquota_informer_objects",
            "Views held by the informer.",
            ("resource",),
            registry=registry,
        )
        self.informer_staleness = Gauge(
            "cardquota_informer_staleness_seconds",
            "Time since the API server last said anything about this resource, a list not before its end; it is asked every few seconds.",
            ("resource",),
            registry=registry,
        )
        self.projection_failures = Counter(
            "cardquota_informer_projection_failures_total",
            "Objects that could not be read and are treated as absent.",
            ("resource",),
            registry=registry,
        )

    def _event_loop(self, registry: CollectorRegistry) -> None:
        self.loop_stalls = Histogram(
            "cardquota_loop_stall_seconds",
            "Pauses of the event loop of more than 50 ms: nothing was heard meanwhile; the log says what ran.",
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self.loop_longest_pause = Gauge(
            "cardquota_loop_longest_pause_seconds",
            "The longest pause of the event loop since the start of the process, however short.",
            registry=registry,
        )

    def _others(self, registry: CollectorRegistry) -> None:
        self.settings_warnings = Gauge(
            "cardquota_settings_warnings",
            "Settings that are not used as they were written; the log says which at the start of the process.",
            registry=registry,
        )
        self.leader = Gauge(
            "cardquota_leader",
            "1 while this process leads.",
            ("lease",),
            registry=registry,
        )
        self.lease_failures = Counter(
            "cardquota_lease_failures_total",
            "Lease reads and writes that failed.",
            ("lease",),
            registry=registry,
        )
        self.events_queued = Gauge(
            "cardquota_events_queued",
            "Events waiting to be written.",
            registry=registry,
        )
        self.events_dropped = Counter(
            "cardquota_events_dropped_total",
            "Events not written: too many others waited about the same object, or the API server refused.",
            ("cause",),
            registry=registry,
        )
        self.events_written = Counter(
            "cardquota_events_written_total",
            "Events written: created, or counted up as a series.",
            ("operation",),
            registry=registry,
        )
        self.connections_refused = Counter(
            "cardquota_connections_refused_total",
            "Connections that were closed from here: for one that came when there was no room, or silent for too long.",
            ("server", "cause"),
            registry=registry,
        )
        self.certificate_loads = Counter(
            "cardquota_serving_certificate_loads_total",
            "Serving certificates offered to the TLS server, by what became of them.",
            ("outcome",),
            registry=registry,
        )
        self.certificate_not_after = Gauge(
            "cardquota_serving_certificate_not_after_timestamp_seconds",
            "End of validity of the certificate being served, seconds since the epoch.",
            registry=registry,
        )
        self.certificate_failures = Counter(
            "cardquota_certificate_failures_total",
            "Passes over the self-made certificates that failed.",
            registry=registry,
        )


DEFAULT = Metrics()
"""The metrics of this process, on the default registry of prometheus_client."""


def add_route(app: web.Application, registry: CollectorRegistry = REGISTRY) -> None:
    """Serves `registry` on GET /metrics, in the format (text or OpenMetrics) that the scraper asks for."""
    app.router.add_get("/metrics", Page(registry).show)


class LongFamily(Metric, ABC):
    """A family that has so many samples that its lines are made in steps; of counters the samples end in `_total`, the name does not."""

    def __init__(self, name: str, documentation: str, kind: Literal["gauge", "counter"] = "gauge") -> None:
        super().__init__(name, documentation, kind)
        del self.samples

    @cached_property
    def samples(self) -> list[Sample]:  # type: ignore[override] # nobody but the base class ever sets it
        """All samples in one go, for whoever collects the registry by other means than a `Page`."""
        return self.all_samples()

    @abstractmethod
    def all_samples(self) -> list[Sample]:
        """What the lines show."""

    @abstractmethod
    def lines(self) -> Steps[list[str]]:
        """The lines below those of help and type, many in each text."""


class Page:
    """The page of one registry. One is made at a time; whoever asks meanwhile waits, and gets the next one with all others.

    So however many ask, each waits for two of them to be made.
    """

    def __init__(self, registry: CollectorRegistry, turns: Turns | None = None) -> None:
        self._registry = registry
        self._turns = turns or Turns()
        self._making = asyncio.Lock()
        self._next: dict[str, _Next] = {}
        """By format, those that are not begun yet."""

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answers in the format (text or OpenMetrics) that the scraper asks for."""
        accepted = _ESCAPING.sub("escaping=underscores", request.headers.get("Accept", ""))
        encode, content_type = choose_encoder(accepted)
        return await answers.in_parts(
            request, await self.made(encode, content_type), {"Content-Type": content_type}
        )

    async def made(self, encode: Encoder, content_type: str = "") -> list[bytes]:
        """The page in parts. It shows what there is while it is made, so its series may differ by some milliseconds."""
        page = self._next.setdefault(content_type, _Next())
        async with self._making:
            if page.parts is None:
                # Whoever comes from here on might miss what has just happened: it gets another one.
                if self._next.get(content_type) is page:
                    del self._next[content_type]
                page.parts = await self._turns.finish(_page(self._registry, encode))
        return page.parts


class _Next:
    """A page that somebody waits for."""

    def __init__(self) -> None:
        self.parts: list[bytes] | None = None


def _page(registry: Collector, encode: Encoder) -> Steps[list[bytes]]:
    """What the encoder makes of the registry, family by family."""
    end, parts = encode(_Families()), list[bytes]()
    for family in registry.collect():
        if isinstance(family, LongFamily):
            head = Metric(family.name, family.documentation, family.type)
            parts.append(encode(_Families(head)).removesuffix(end))
            parts.extend(text.encode() for text in (yield from family.lines()))
        else:
            parts.append(encode(_Families(family)).removesuffix(end))
        yield
    return [*parts, end]


class _Families(Collector):
    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
