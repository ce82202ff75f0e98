"""What the controller counts, and the queue series that dashboards read."""

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller.series import Labels, QueueGauges
from core.names import MGPU_RESOURCES
from core.objects import Pod
from core.queues.account import Account
from core.queues.amounts import total
from core.queues.attributes import deserved_of, real_capability
from core.queues.ledger import Ledger
from core.queues.overuse import overuse
from core.queues.status import is_card

_QUEUE_SERIES = {
    "volcano_queue_card_deserved": "Cards that the queue should have: what it is guaranteed, which is its quota; in cards.",
    "volcano_queue_card_allocated": "Cards of bound pods, in cards.",
    "volcano_queue_card_request": "Cards of bound, reserved and waiting pods, in cards.",
    "volcano_queue_card_capacity": "Card quota of the queue, in cards.",
    "cardquota_queue_card_reserved": "Cards of pods whose gate is lifted but that have no node yet, in cards.",
    "cardquota_queue_card_overused": "Cards allocated and reserved beyond the quota of the queue, in cards.",
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
            "Answers of the binding hook: passed (nothing to decide, or nobody to ask), granted, denied, by reason.",
            ("verdict", "reason"),
            registry=registry,
        )
        self.bind_seconds = Histogram(
            "cardquota_bind_duration_seconds",
            "Time the binding hook took for a pod about which there was something to decide.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
            registry=registry,
        )
        self.searches_cut_short = Counter(
            "cardquota_mgpu_searches_cut_short_total",
            "Binds whose search for mGPU cards ended by its budget: the cards may not be the best ones, or none was found.",
            registry=registry,
        )
        self.pass_seconds = Histogram(
            "cardquota_quota_pass_duration_seconds",
            "Time of one quota pass over all queues that had changed.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
            registry=registry,
        )
        self.repairs = Counter(
            "cardquota_mgpu_repairs_total",
            "Writes that mend the record of a bound mGPU pod, by reason and outcome: done, refused, retried.",
            ("reason", "outcome"),
            registry=registry,
        )
        self.irregularities = Gauge(
            "cardquota_mgpu_irregularities",
            "What is wrong now with the records of bound mGPU pods, by kind; counted by the leader only.",
            ("kind",),
            registry=registry,
        )
        self.evictions = Counter(
            "cardquota_reservation_evictions_total",
            "Deletions of pods that held quota without a node for too long, by outcome: done, failed.",
            ("outcome",),
            registry=registry,
        )
        self.definition_writes = Counter(
            "cardquota_queue_definition_writes_total",
            "Writes that add spec.dra to the definition of Queue, by outcome: done, failed.",
            ("outcome",),
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

    `late` gives the pods that have been reserved for too long.
    """

    def __init__(self, ledger: Ledger, late: Callable[[], Iterable[Pod]] = tuple) -> None:
        self._ledger = ledger
        self._late = late
        self._gauges = {name: QueueGauges(name, text, "card") for name, text in _QUEUE_SERIES.items()}
        self.leading = False

    def collect(self) -> Iterator[Metric]:
        """The families by queue and card, and the one by queue alone."""
        values = self._values() if self.leading else {}
        for name, gauges in self._gauges.items():
            cards = {labels: amount / 1000 for labels, amount in values.get(name, {}).items()}
            yield gauges.page(cards, self._ledger.queues)
        yield self._reserved_too_long()

    def _reserved_too_long(self) -> Metric:
        family = GaugeMetricFamily(
            "cardquota_reserved_too_long",
            "Pods that have held quota without a node for longer than reservation.warnAfter.",
            labels=("queue_name",),
        )
        if self.leading:
            late = Counted(self._ledger.attribution(pod).queue for pod in self._late())
            for queue in sorted({*self._ledger.queues, *late}):
                family.add_metric((queue,), late[queue])
        return family

    def _values(self) -> dict[str, dict[Labels, int]]:
        found: dict[str, dict[Labels, int]] = {name: {} for name in _QUEUE_SERIES}
        cluster = self._ledger.inventory.totals()
        guaranteed = total(limits.cards for limits in self._ledger.limits.values())
        for queue, limits in self._ledger.limits.items():
            account = self._ledger.accounts.get(queue) or Account()
            parts = (account.allocated, account.reserved, account.waiting)
            keys = {*limits.cards, *(key for part in parts for key in part if key not in MGPU_RESOURCES)}
            real = real_capability({card: cluster.get(card, 0) for card in keys}, guaranteed, limits.cards)
            deserved = deserved_of(limits.cards, real, limits.cards)
            beyond = {one.key: one.used - one.quota for one in overuse(limits, account)}
            for key in keys:
                labels = (queue, key)
                sums = [part.get(key, 0) for part in parts]
                found["volcano_queue_card_request"][labels] = sum(sums)
                found["cardquota_queue_card_reserved"][labels] = sums[1]
                if is_card(key):
                    found["volcano_queue_card_deserved"][labels] = deserved.get(key, 0)
                    found["volcano_queue_card_capacity"][labels] = limits.cards.get(key, 0)
                    found["volcano_queue_card_allocated"][labels] = sums[0]
                    found["cardquota_queue_card_overused"][labels] = beyond.get(key, 0)
        return found
