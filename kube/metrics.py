"""The metric objects of the packages below `kube`, and the page on which a process shows its registry.

One holder instead of module-level counters: two processes in one interpreter (tests, the demo) keep their numbers
apart by passing a registry each. Labels are bounded: no pod, node or object name ever becomes one.
"""

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from kube.exposition import Page


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
            "Time since the API server last said anything about this resource; it is asked every few seconds.",
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
