"""What one pod is booked with, and the sums of one queue."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from core.cards.ask import assignment_of
from core.objects import Pod
from core.queues.amounts import add
from core.queues.attribution import Attribution
from core.queues.demand import Demand
from core.stage import Stage


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod in the books."""

    pod: Pod
    stage: Stage
    attribution: Attribution
    demand: Demand
    charged: Mapping[str, int]
    unlifted: bool
    """Whether no gate holds the pod back and yet nobody has granted it its cards: its gate was forced off, or it never had
    one. A scheduler may bind it any moment, so it is reserved; but its bind is still to be judged."""

    @classmethod
    def of(cls, pod: Pod, stage: Stage, attribution: Attribution, demand: Demand) -> Self:
        """The entry of a pod that charges this queue with this demand."""
        unlifted = stage is Stage.RESERVED and pod.card_name != "" and assignment_of(pod) is None
        return cls(pod, stage, attribution, demand, demand.amounts, unlifted)

    @property
    def queue(self) -> str:
        """The queue that is charged."""
        return self.attribution.queue

    @property
    def uncounted(self) -> bool:
        """Whether the pod names a card and cannot be counted."""
        return self.demand.card is None and self.demand.problem != "" and self.pod.card_name != ""

    @property
    def holds_share(self) -> bool:
        """Whether the pod is about to take mGPU shares of a node that nobody knows yet."""
        return self.stage is Stage.RESERVED and self.demand.mgpu is not None

    @property
    def charge(self) -> tuple[Attribution, Demand]:
        """Who is charged, and with what."""
        return self.attribution, self.demand

    def alike(self, later: "Entry") -> bool:
        """Whether a later state of the pod differs in nothing that decides about this pod or any other.

        Of a pod with mGPU shares the records count too: they say which cards have room left.
        """
        if self.stage is not later.stage or self.charge != later.charge:
            return False
        settled = self.stage is not Stage.WAITING and self.demand.mgpu is None
        return settled or replace(self.pod, resource_version=later.pod.resource_version) == later.pod

    @property
    def order(self) -> tuple[int, int, str]:
        """Place among the waiting pods of a queue: priority, age, name."""
        return (-self.pod.priority, self.pod.created, self.pod.key)


class Account:
    """One queue's sums in thousandths, by stage, its waiting pods by UID, and those whose cards count as none.

    These have a node, or may get one any moment, and name a card that nobody can count any more. `unlifted` is the part of
    `reserved` that was granted to nobody, `unlifted_cpu_memory` what these pods use besides.
    """

    __slots__ = (
        "_line",
        "allocated",
        "reserved",
        "uncounted_pods",
        "unlifted",
        "unlifted_cpu_memory",
        "waiting",
        "waiting_pods",
    )

    def __init__(self) -> None:
        self.allocated: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.unlifted: dict[str, int] = {}
        self.unlifted_cpu_memory: dict[str, int] = {}
        self.waiting_pods: dict[str, Entry] = {}
        self.uncounted_pods: dict[str, Entry] = {}
        self._line: list[tuple[int, int, str, str]] = []
        """Place and UID of each waiting pod, sorted."""

    def in_order(self) -> list[Entry]:
        """The waiting pods by their place."""
        return [self.waiting_pods[place[-1]] for place in self._line]

    @property
    def empty(self) -> bool:
        """Whether nobody waits and nothing is used."""
        return not (self.waiting_pods or self.uncounted_pods or self.allocated or self.reserved)

    def used(self, key: str) -> int:
        """Allocated plus reserved."""
        return self.allocated.get(key, 0) + self.reserved.get(key, 0)

    def book(self, entry: Entry) -> None:
        """Adds an entry."""
        if entry.stage is Stage.WAITING:
            self.waiting_pods[entry.pod.uid] = entry
            insort(self._line, (*entry.order, entry.pod.uid))
        elif entry.uncounted:
            self.uncounted_pods[entry.pod.uid] = entry
        self._add(entry, 1)

    def unbook(self, entry: Entry) -> None:
        """Takes out an entry that was booked."""
        if entry.stage is Stage.WAITING:
            del self.waiting_pods[entry.pod.uid]
            del self._line[bisect_left(self._line, (*entry.order, entry.pod.uid))]
        elif entry.uncounted:
            self.uncounted_pods.pop(entry.pod.uid, None)
        self._add(entry, -1)

    def _add(self, entry: Entry, sign: int) -> None:
        add(self._sums(entry.stage), entry.charged, sign)
        if entry.unlifted:
            add(self.unlifted, entry.charged, sign)
            add(self.unlifted_cpu_memory, entry.demand.cpu_memory, sign)

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
