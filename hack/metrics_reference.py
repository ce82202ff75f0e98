"""Writes docs/metrics.md: `python -m hack.metrics_reference`. A test fails while the page differs from what would be written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from controller.decision_series import DecisionCounts, DecisionSeries
from controller.device_series import DeviceSeries
from controller.discovery import DiscoveryLog
from controller.extender_metrics import ExtenderMetrics
from controller.metrics import Metrics, QueueSeries
from controller.node_series import NodeSeries
from controller.queue_definition import show_presence
from controller.series import BookSeries
from controller.usage_counters import UsageCounters
from controller.usage_series import UsageSeries
from core.crossquota.book import guest_book
from core.queues.ledger import Ledger
from core.settings import Settings
from core.usage.courses import Courses
from kube.admission.metrics import ReviewMetrics
from kube.metrics import Metrics as ProcessMetrics

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

_HEAD = """\
# Metrics

[中文](zh/metrics.md)

Both processes show their metrics as `GET /metrics` on port 8080, in the text format or in OpenMetrics; the Service
`cardquota-metrics` leads to every replica. No label holds the name of a pod or of any other object but queues, nodes and, of usage over
time, namespaces; of these there are at most 2,000 series of each kind. Of the standby controllers the series about queues, cards and nodes are missing; sums over all replicas are right.

Nodes without cards are in no series. One with cards has two for each kind of card, one for each of its mGPU cards, and two for each
resource that CrossQuota limits on it: 5,000 nodes with eight mGPU cards each make 60,000 series and 5 MB of the page. Whoever has no use for them
sets `monitoring.serviceMonitor.metricRelabelings` of the chart to `[{sourceLabels: [__name__, node], regex: cardquota_node_.+;.+, action: drop}]`.

What to look at is in the [dashboards](../charts/cardquota/monitoring/dashboards), what to be told of in the [alerts](alerts.md).

A counter is shown from its first use on. Histograms have `_bucket`, `_sum` and `_count`. This page is written by
`python -m hack.metrics_reference`.
"""
_SECTIONS = {
    "Queues and cards": "Of the leading controller. Those that begin with `volcano_queue` are named as Volcano's card plugin names them.\n"
    "The label `card` names what nodes, settings or the queue's quota know, and up to 100 choices `A|B` of them in each queue; what waits for\n"
    "anything else is counted under `_other`.",
    "Controller": "",
    "Extender": "Of the controllers; see [extenders](extenders.md).",
    "Admission": "Of the webhook, and of the controllers for binds.",
    "Both processes": "",
}


@dataclass(frozen=True, slots=True)
class Series:
    """One metric as a scraper finds it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


class Registered(CollectorRegistry):
    """A registry that knows what was registered."""

    def __init__(self) -> None:
        super().__init__()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Take note of it as well."""
        super().register(collector)
        self.collectors.append(collector)


def reference() -> dict[str, list[Series]]:
    """Return every metric by section, by name."""
    registries = {section: Registered() for section in _SECTIONS}
    ledger = Ledger(Settings())
    queues = registries["Queues and cards"]
    for collector in (
        QueueSeries(ledger),
        DecisionSeries(DecisionCounts()),
        UsageSeries(ledger, lambda: False),
        NodeSeries(ledger, guest_book((), (), Settings()), lambda: False),
        DeviceSeries(ledger.devices, lambda: False),
        UsageCounters(Courses(), lambda: 0, lambda: False, lambda: False),
    ):
        queues.register(collector)
    Metrics(registries["Controller"])
    DiscoveryLog(ledger.inventory, registries["Controller"])
    show_presence(registries["Controller"], lambda: False)
    ExtenderMetrics(registries["Extender"])
    ReviewMetrics(registries["Admission"])
    ProcessMetrics(registries["Both processes"])
    return {
        section: sorted(_series(registry), key=lambda one: one.name)
        for section, registry in registries.items()
    }


def _series(registry: Registered) -> Iterator[Series]:
    for collector in registry.collectors:
        labels = _labels(collector)
        for family in collector.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Series(name, family.type, labels.get(family.name, ()), family.documentation)


def _labels(collector: Any) -> dict[str, tuple[str, ...]]:
    """The labels of each family. The library tells them nowhere but in what it has shown, and that may be nothing yet."""
    if isinstance(collector, MetricWrapperBase):
        return {family.name: tuple(collector._labelnames) for family in collector.collect()}  # noqa: SLF001
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(collector, UsageCounters | NodeSeries):
        found |= collector.label_names
    for value in vars(collector).values():
        if isinstance(value, BookSeries):
            found |= {family.name: value.label_names for family in value.families()}
    return {"cardquota_cards": ("card",), **found}


def render() -> str:
    """Return the text of the page."""
    parts = [_HEAD]
    for section, found in reference().items():
        lines = [f"\n## {section}\n"]
        if _SECTIONS[section]:
            lines.append(f"{_SECTIONS[section]}\n")
        lines += ["| metric | type | labels | |", "|---|---|---|---|"]
        for one in found:
            labels = ", ".join(f"`{label}`" for label in one.labels)
            lines.append(
                f"| `{one.name}` | {one.kind} | {labels} | {one.meaning.replace('|', chr(92) + '|')} |"
            )
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
