"""What the controller counts, and the queue series that dashboards read."""

from abc import abstractmethod
from collections import Counter as Counted
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from controller.decision_series import DecisionCounts
from controller.series import BookSeries, Labels, Values
from controller.waiting_names import shown
from core.names import MGPU_RESOURCES
from core.objects import Pod
from core.plan.unfinished import unfinished_gangs
from core.queues.account import NOTHING, Account
from core.queues.amounts import Amounts, is_card
from core.queues.ledger import Ledger
from core.queues.limits import Limits
from core.queues.overuse import overuse
from core.usage.tally import OTHER

_QUEUE_SERIES = {
    "volcano_queue_card_deserved": "Cards that the queue should have: what it is guaranteed, which is its quota; in cards.",
    "volcano_queue_card_allocated": "Cards of bound pods, in cards.",
    "volcano_queue_card_request": "Cards of bound, reserved and waiting pods, in cards.",
    "volcano_queue_card_capacity": "Card quota of the queue, in cards.",
    "cardquota_queue_card_reserved": "Cards of pods whose gate is lifted but that have no node yet, in cards.",
    "cardquota_queue_card_overused": "Cards allocated and reserved beyond the quota of the queue, in cards.",
}
_LATE_SERIES = {
    "cardquota_reserved_too_long": "Pods that have held quota without a node for longer than reservation.warnAfter.",
}
_UNFINISHED_SERIES = {
    "cardquota_gangs_unfinished": "Gangs of which fewer members are in than have to start together, so that they cannot.",
}
_UNREADABLE_SERIES = {
    "cardquota_queue_quota_unreadable": "1 for a queue that has no cards, or no devices, because its quota of them cannot be read.",
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
        self.by_queue = DecisionCounts()
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
        self.ledger_drift = Gauge(
            "cardquota_ledger_drift",
            "Places in which the leader's books were wrong at its last audit, by kind: pod, sum. Anything but 0 is a fault.",
            ("kind",),
            registry=registry,
        )
        self.ledger_audits = Counter(
            "cardquota_ledger_audits_total",
            "Audits of the leader's books: one a minute after it has begun to lead, then one every ten minutes.",
            registry=registry,
        )
        self.usage_writes = Counter(
            "cardquota_usage_writes_total",
            "Writes of what was used over time, by outcome: done, failed, retried.",
            ("outcome",),
            registry=registry,
        )
        self.usage_written = Gauge(
            "cardquota_usage_written_timestamp_seconds",
            "Until when this process has written down what was used over time, in seconds since the epoch; 0 before the first time.",
            registry=registry,
        )
        self.status_writes = Counter(
            "cardquota_queue_status_writes_total",
            "Writes of Queue status, by outcome: done, failed.",
            ("outcome",),
            registry=registry,
        )

    def lifted(self, queue: str, outcome: str) -> None:
        """Counts a write that lifts a gate."""
        self.lifts.labels(outcome).inc()
        self.by_queue.lifted(queue, outcome)

    def held(self, queue: str, reason: str) -> None:
        """Counts a decision to leave a pod waiting."""
        self.holds.labels(reason).inc()
        self.by_queue.held(queue, reason)

    @property
    def drift(self) -> int | None:
        """In how many places the books were wrong at the last audit; None where there was none since this replica leads."""
        found = [sample.value for family in self.ledger_drift.collect() for sample in family.samples]
        return int(sum(found)) if found else None


class QueueSeries(Collector):
    """Per queue and card, read from the ledger when the page is asked for; only the leader shows them.

    `late` gives the pods that have been reserved for too long, `unfinished` the gangs that were found cut short before.
    """

    def __init__(
        self,
        ledger: Ledger,
        late: Callable[[], Iterable[Pod]] = tuple,
        unfinished: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._cards = _CardGauges(ledger, lambda: self.leading)
        self._late = _LateGauges(ledger, late, lambda: self.leading)
        self._unfinished = _UnfinishedGauges(ledger, unfinished, lambda: self.leading)
        self._unreadable = _UnreadableGauges(ledger, lambda: self.leading)
        self.leading = False

    def collect(self) -> Iterator[Metric]:
        """The families by queue and card, and those by queue alone."""
        yield from self._cards.families()
        yield from self._late.families()
        yield from self._unfinished.families()
        yield from self._unreadable.families()


@dataclass(frozen=True, slots=True)
class _Books:
    """The limits of a queue, and copies of its own sums."""

    limits: Limits
    parts: tuple[Amounts, Amounts, Amounts]
    """What is allocated, reserved and waited for, the latter by the names that are shown."""
    over: Amounts
    """What is used beyond the quota."""


class _CardGauges(BookSeries[_Books]):
    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        super().__init__(_QUEUE_SERIES, "queue_name", "card")
        self._ledger = ledger
        self._leading = leading

    def sources(self) -> Iterator[tuple[str, _Books] | None]:
        cards = self._ledger.inventory.cards() if self._leading() else ()
        for queue in sorted(self._ledger.limits) if self._leading() else ():
            limits = self._ledger.limits.get(queue)
            account = self._ledger.accounts.get(queue) or Account()
            if limits is not None:
                known = {*cards, *limits.cards, *account.allocated, *account.reserved, *MGPU_RESOURCES}
                waiting = yield from shown(account.waiting, known)
                below = NOTHING if self._ledger.subtrees is None else self._ledger.subtrees.below(queue)
                over = {one.key: one.used - one.quota for one in overuse(limits, account, below)}
                parts = dict(account.allocated), dict(account.reserved), waiting
                yield queue, _Books(limits, parts, over)

    def values(self, source: _Books) -> Sequence[Values]:
        found: dict[str, dict[Labels, float]] = {name: {} for name in _QUEUE_SERIES}
        limits, parts = source.limits, source.parts
        keys = {*limits.cards, *source.over, *(key for part in parts for key in part)}
        for key in keys - {*MGPU_RESOURCES}:
            quota, (allocated, reserved, waiting) = (
                limits.cards.get(key, 0),
                (part.get(key, 0) for part in parts),
            )
            found["volcano_queue_card_request"][key,] = (allocated + reserved + waiting) / 1000
            found["cardquota_queue_card_reserved"][key,] = reserved / 1000
            if is_card(key) and key != OTHER:
                # A queue is guaranteed its quota, and deserves what it is guaranteed at the least.
                found["volcano_queue_card_deserved"][key,] = quota / 1000
                found["volcano_queue_card_capacity"][key,] = quota / 1000
                found["volcano_queue_card_allocated"][key,] = allocated / 1000
                found["cardquota_queue_card_overused"][key,] = source.over.get(key, 0) / 1000
        return tuple(found.values())

    def existing(self) -> Container[str]:
        return self._ledger.queues


class _NumberGauges(BookSeries[int]):
    """The number of something in every queue; a queue that is gone is not shown any more."""

    def __init__(self, series: Mapping[str, str], ledger: Ledger, leading: Callable[[], bool]) -> None:
        super().__init__(series, "queue_name")
        self._ledger = ledger
        self._leading = leading

    @abstractmethod
    def found(self) -> Iterator[str | None]:
        """The queue of each of them; None wherever others may come to their turn."""

    def sources(self) -> Iterator[tuple[str, int] | None]:
        if not self._leading():
            return
        numbers = Counted[str]()
        for queue in self.found():
            if queue is not None:
                numbers[queue] += 1
            yield None
        for queue in sorted({*self._ledger.queues, *numbers}):
            yield queue, numbers[queue]

    def values(self, source: int) -> Sequence[Values]:
        return ({(): source},)

    def existing(self) -> Container[str]:
        return ()


class _LateGauges(_NumberGauges):
    def __init__(
        self, ledger: Ledger, late: Callable[[], Iterable[Pod]], leading: Callable[[], bool]
    ) -> None:
        super().__init__(_LATE_SERIES, ledger, leading)
        self._late = late

    def found(self) -> Iterator[str]:
        for pod in self._late():
            yield self._ledger.attribution(pod).queue


class _UnfinishedGauges(_NumberGauges):
    def __init__(
        self, ledger: Ledger, known: Callable[[], Iterable[str]], leading: Callable[[], bool]
    ) -> None:
        super().__init__(_UNFINISHED_SERIES, ledger, leading)
        self._known = known

    def found(self) -> Iterator[str | None]:
        for gang in unfinished_gangs(self._ledger, self._known()):
            yield gang.queue if gang is not None else None


class _UnreadableGauges(_NumberGauges):
    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        super().__init__(_UNREADABLE_SERIES, ledger, leading)

    def found(self) -> Iterator[str | None]:
        for queue in sorted(self._ledger.limits):
            limits = self._ledger.limits.get(queue)
            unreadable = limits is not None and (limits.malformed or self._ledger.devices.malformed(queue))
            yield queue if unreadable else None
