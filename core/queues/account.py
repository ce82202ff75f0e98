"""What one pod is booked with, and the sums of one queue."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.objects import Pod
from core.queues.attribution import Attribution
from core.queues.demand import Demand, Stage


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod in the books."""

    pod: Pod
    stage: Stage
    attribution: Attribution
    demand: Demand
    charged: Mapping[str, int]

    @property
    def queue(self) -> str:
        """The queue that is charged."""
        return self.attribution.queue

    @property
    def order(self) -> tuple[int, int, str]:
        """Place among the waiting pods of a queue: priority, age, name."""
        return (-self.pod.priority, self.pod.created, self.pod.key)


class Account:
    """One queue's sums in thousandths, by stage, and its waiting pods by UID."""

    __slots__ = ("allocated", "reserved", "waiting", "waiting_pods")

    def __init__(self) -> None:
        self.allocated: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.waiting_pods: dict[str, Entry] = {}

    @property
    def empty(self) -> bool:
        """Whether nobody waits and nothing is used."""
        return not (self.waiting_pods or self.allocated or self.reserved)

    def used(self, key: str) -> int:
        """Allocated plus reserved."""
        return self.allocated.get(key, 0) + self.reserved.get(key, 0)

    def book(self, entry: Entry) -> None:
        """Adds an entry."""
        if entry.stage is Stage.WAITING:
            self.waiting_pods[entry.pod.uid] = entry
        self._add(entry, 1)

    def unbook(self, entry: Entry) -> None:
        """Takes out an entry that was booked."""
        if entry.stage is Stage.WAITING:
            self.waiting_pods.pop(entry.pod.uid, None)
        self._add(entry, -1)

    def _add(self, entry: Entry, sign: int) -> None:
        sums = self._sums(entry.stage)
        for key, amount in entry.charged.items():
            left = sums.get(key, 0) + sign * amount
            if left:
                sums[key] = left
            else:
                sums.pop(key, None)

    def _sums(self, stage: Stage) -> dict[str, int]:
        match stage:
            case Stage.ALLOCATED:
                return self.allocated
            case Stage.RESERVED:
                return self.reserved
            case Stage.WAITING:
                return self.waiting
            case Stage.IGNORED:
                raise ValueError("an ignored pod is not booked")
