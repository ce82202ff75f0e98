"""What is decided on the pods of each queue, as counters: lifts by what became of the write, and holds by reason."""

from collections import Counter as Counted
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from controller.series import BookSeries, Values
from core.objects import Queue

_LIFTS: Final = {
    "cardquota_queue_lifts": "Writes that lift a gate for the queue, by outcome: done, refused, retried.",
}
_HOLDS: Final = {
    "cardquota_queue_holds": "Decisions to leave a pod of the queue waiting, by reason; a pod counts each time it is looked at.",
}


class DecisionCounts:
    """The numbers of each queue that exists, since then or since the process began, by outcome or reason."""

    def __init__(self) -> None:
        self.lifts: dict[str, Counted[str]] = {}
        self.holds: dict[str, Counted[str]] = {}

    def queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        """For whoever follows the queues: forgets one that is gone, and knows one that has come."""
        for counts in (self.lifts, self.holds):
            if old is not None and (new is None or new.uid != old.uid):
                counts.pop(old.name, None)
            if new is not None:
                counts.setdefault(new.name, Counted())

    def lifted(self, queue: str, outcome: str) -> None:
        """Counts a write, if the queue exists."""
        if queue in self.lifts:
            self.lifts[queue][outcome] += 1

    def held(self, queue: str, reason: str) -> None:
        """Counts a decision, if the queue exists."""
        if queue in self.holds:
            self.holds[queue][reason] += 1


class DecisionSeries(Collector):
    """The counts as they are when the page is asked for."""

    def __init__(self, counts: DecisionCounts) -> None:
        self._lifts = _Counters(_LIFTS, "outcome", counts.lifts)
        self._holds = _Counters(_HOLDS, "reason", counts.holds)

    def collect(self) -> Iterator[Metric]:
        """Both families."""
        yield from self._lifts.families()
        yield from self._holds.families()


class _Counters(BookSeries[Mapping[str, int]]):
    def __init__(
        self, families: Mapping[str, str], label: str, counts: Mapping[str, Mapping[str, int]]
    ) -> None:
        super().__init__(families, "queue_name", label, kind="counter")
        self._counts = counts

    def sources(self) -> Iterator[tuple[str, Mapping[str, int]] | None]:
        for queue in sorted(self._counts):
            if numbers := self._counts.get(queue):
                # A copy: the counts go on.
                yield queue, dict(numbers)
            else:
                yield None

    def values(self, source: Mapping[str, int]) -> Sequence[Values]:
        return ({(name,): number for name, number in source.items()},)

    def existing(self) -> Container[str]:
        return ()
