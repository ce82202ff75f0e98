"""What is counted about the questions of schedulers."""

from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram


class ExtenderMetrics:
    """The metrics of the extender endpoints on one registry. Labels are bounded: paths, outcomes, reason codes."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.requests: Final = Counter(
            "cardquota_extender_requests_total",
            "Questions of schedulers by path and outcome: answered, not-ready, failed.",
            ("path", "outcome"),
            registry=registry,
        )
        self.refusals: Final = Counter(
            "cardquota_extender_refusals_total",
            "Nodes that were ruled out for a pod, by reason; a node counts each time it is asked about.",
            ("reason",),
            registry=registry,
        )
        self.seconds: Final = Histogram(
            "cardquota_extender_duration_seconds",
            "Time from the complete body of a question to its answer.",
            ("path",),
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
            registry=registry,
        )
