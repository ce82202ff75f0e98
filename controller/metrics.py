"""What the controller counts, and the queue series that dashboards read."""

from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.names import MGPU_RESOURCES
from core.queues.account import Account
from core.queues.ledger import Ledger

_QUEUE_SERIES = {
    "volcano_queue_card_deserved": "Cards that the queue is meant to have, in cards.",
    "volcano_queue_card_allocated": "Cards of bound pods, in cards.",
    "volcano_queue_card_request": "Cards of bound, reserved and waiting pods, in cards.",
    "volcano_queue_card_capacity": "Card quota of the queue, in cards.",
    "cardquota_queue_card_reserved": "Cards of pods whose gate is lifted but that have no node yet, in cards.",
}


class Metrics:
    """Counters of one controller process."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self.lifts = Counter(
            "cardquota_lifts_total",
            "Writes that lift a gate, by outcome: done, refused, retried.",
            ("outcome",),
            registry=registry,
        )
        self.holds = Counter(
            "cardquota_holds_total",
            "Decisions to leave a pod waiting, by reason; a pod counts each time it is looked at.",
            ("reason",),
            registry=registry,
        )
        self.binds = Counter(
            "cardquota_binds_total",
            "Answers of the binding hook: passed (asks for nothing of ours), granted, denied, by reason.",
            ("verdict", "reason"),
            registry=registry,
        )
        self.bind_seconds = Histogram(
            "cardquota_bind_duration_seconds",
            "Time the binding hook took for a pod that asks for mGPU.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
            registry=registry,
        )
        self.pass_seconds = Histogram(
            "cardquota_quota_pass_duration_seconds",
            "Time of one quota pass over all queues that had changed.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
            registry=registry,
        )
        self.status_writes = Counter(
            "cardquota_queue_status_writes_total",
            "Writes of Queue status, by outcome: done, failed.",
            ("outcome",),
            registry=registry,
        )


class QueueSeries(Collector):
    """Per queue and card, read from the ledger when the page is asked for; only the leader shows them.

    A series whose queue or card is gone is shown once more with 0 and then dropped, so that a sum over time does not
    keep its last value.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._shown: dict[str, set[tuple[str, str]]] = {name: set() for name in _QUEUE_SERIES}
        self.leading = False

    def collect(self) -> Iterator[Metric]:
        """The families, each with the labels queue_name and card."""
        values = self._values() if self.leading else {name: {} for name in _QUEUE_SERIES}
        for name, documentation in _QUEUE_SERIES.items():
            family = GaugeMetricFamily(name, documentation, labels=("queue_name", "card"))
            for labels in self._shown[name] - values[name].keys():
                if labels[0] in self._ledger.queues:
                    family.add_metric(labels, 0)
            for labels, amount in sorted(values[name].items()):
                family.add_metric(labels, amount / 1000)
            self._shown[name] = set(values[name])
            yield family

    def _values(self) -> dict[str, dict[tuple[str, str], int]]:
        found: dict[str, dict[tuple[str, str], int]] = {name: {} for name in _QUEUE_SERIES}
        for queue, limits in self._ledger.limits.items():
            account = self._ledger.accounts.get(queue) or Account()
            for card in {*limits.cards, *_cards(account.allocated, account.reserved, account.waiting)}:
                sums = [part.get(card, 0) for part in (account.allocated, account.reserved, account.waiting)]
                labels = (queue, card)
                # Cards are guaranteed and deserved up to their quota, so both equal it.
                found["volcano_queue_card_deserved"][labels] = limits.cards.get(card, 0)
                found["volcano_queue_card_capacity"][labels] = limits.cards.get(card, 0)
                found["volcano_queue_card_allocated"][labels] = sums[0]
                found["volcano_queue_card_request"][labels] = sum(sums)
                found["cardquota_queue_card_reserved"][labels] = sums[1]
        return found


def _cards(*sums: dict[str, int]) -> set[str]:
    return {key for amounts in sums for key in amounts if key not in MGPU_RESOURCES}
