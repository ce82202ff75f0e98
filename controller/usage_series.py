"""Who uses a queue's cards and who waits longest, and how many cards there are, for dashboards and alerts."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller.series import BookSeries, Labels, Values
from core.names import MGPU_RESOURCES
from core.queues.account import Account
from core.queues.ledger import Ledger
from core.usage.seen import OFFLINE, ONLINE

_USED: Final = {
    "cardquota_queue_card_used": "Cards of bound and reserved pods by kind of workload: offline is a Volcano Job, online all "
    "others; in cards.",
}
_OLDEST: Final = {
    "cardquota_queue_oldest_waiting_timestamp_seconds": "When the pod was created that waits longest at the gate for this queue, "
    "in seconds since the epoch; 0 once after nobody waits any more.",
}
_CARDS: Final = "cardquota_cards"
_CARDS_HELP: Final = "Cards that the nodes show, whatever the state of these, in cards."
_SECOND: Final = 1_000_000
_IN_ONE_STEP: Final = 250


class UsageSeries(Collector):
    """Read from the ledger when the page is asked for, while `leading` says so."""

    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        self._ledger = ledger
        self._leading = leading
        self._used = _UsedGauges(ledger, leading)
        self._oldest = _OldestGauges(ledger, leading)

    def collect(self) -> Iterator[Metric]:
        """The three families."""
        yield from self._used.families()
        yield from self._oldest.families()
        cards = GaugeMetricFamily(_CARDS, _CARDS_HELP, labels=("card",))
        for card, milli in sorted(self._ledger.inventory.totals().items()) if self._leading() else ():
            cards.add_metric((card,), milli / 1000)
        yield cards


@dataclass(frozen=True, slots=True)
class _Use:
    """Copies of a queue's sums, of all pods and of those of Volcano Jobs."""

    used: Mapping[str, int]
    offline: Mapping[str, int]


class _UsedGauges(BookSeries[_Use]):
    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        super().__init__(_USED, "queue_name", "card", "kind")
        self._ledger = ledger
        self._leading = leading

    def sources(self) -> Iterator[tuple[str, _Use] | None]:
        for queue in sorted(self._ledger.accounts) if self._leading() else ():
            account = self._ledger.accounts.get(queue) or Account()
            keys = {*account.allocated, *account.reserved} - {*MGPU_RESOURCES}
            yield queue, _Use({key: account.used(key) for key in keys}, dict(account.offline))

    def values(self, source: _Use) -> Sequence[Values]:
        found: dict[Labels, float] = {}
        for key, used in source.used.items():
            offline = source.offline.get(key, 0)
            found[key, OFFLINE] = offline / 1000
            found[key, ONLINE] = (used - offline) / 1000
        return (found,)

    def existing(self) -> Container[str]:
        return self._ledger.queues


class _OldestGauges(BookSeries[int]):
    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        super().__init__(_OLDEST, "queue_name")
        self._ledger = ledger
        self._leading = leading

    def sources(self) -> Iterator[tuple[str, int] | None]:
        for queue in sorted(self._ledger.accounts) if self._leading() else ():
            account = self._ledger.accounts.get(queue) or Account()
            oldest = 0
            # A copy: pods come and go between two steps.
            for number, entry in enumerate(tuple(account.waiting_pods.values()), 1):
                if entry.pod.created and (not oldest or entry.pod.created < oldest):
                    oldest = entry.pod.created
                if number % _IN_ONE_STEP == 0:
                    yield None
            yield queue, oldest

    def values(self, source: int) -> Sequence[Values]:
        return ({(): source / _SECOND} if source else {},)

    def existing(self) -> Container[str]:
        return self._ledger.queues
