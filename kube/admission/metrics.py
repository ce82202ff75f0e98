"""What is counted about answers to admission reviews."""

from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram


class ReviewMetrics:
    """The metrics of admission endpoints on one registry. Labels are bounded: paths, verdicts, reason codes."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.requests: Final = Counter(
            "cardquota_admission_requests_total",
            "Admission requests by path and verdict (allowed, patched, denied, failed); code is the first reason of "
            "a denial, or the HTTP status of a request that could not be answered.",
            ("path", "verdict", "code"),
            registry=registry,
        )
        self.seconds: Final = Histogram(
            "cardquota_admission_duration_seconds",
            "Time from the complete body of a request to its answer.",
            ("path",),
            buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5),
            registry=registry,
        )


DEFAULT: Final = ReviewMetrics()
"""The metrics of this process, on the default registry of prometheus_client."""
