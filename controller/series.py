"""Gauges that are read off the books when the page is asked for."""

from collections.abc import Container, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

Labels = tuple[str, ...]


class QueueGauges:
    """One family whose first label is the queue.

    A series that is gone is shown once more with 0 and then dropped, so that a sum over time does not keep its last
    value; those of a deleted queue are dropped at once.
    """

    def __init__(self, name: str, documentation: str, *labels: str) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = ("queue_name", *labels)
        self._shown: frozenset[Labels] = frozenset()

    def page(self, values: Mapping[Labels, float], queues: Container[str]) -> Metric:
        """The family with these values by labels; `queues` are those that exist."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels in sorted(self._shown - values.keys()):
            if labels[0] in queues:
                family.add_metric(labels, 0)
        for labels, value in sorted(values.items()):
            family.add_metric(labels, value)
        self._shown = frozenset(values)
        return family
