"""The sums of one queue."""

from collections.abc import Mapping

from core.queues.amounts import add
from core.queues.attribution import owned_by_job
from core.queues.entry import Entry
from core.queues.line import Line
from core.stage import Stage


class Account:
    """One queue's sums in thousandths, by stage, its waiting pods in line, and those whose cards count as none.

    These have a node, or may get one any moment, and name a card that nobody can count any more. `unlifted` is the part of
    `reserved` that was granted to nobody, `unlifted_cpu_memory` what these pods use besides. `offline` is the part of `allocated` and
    `reserved` that pods of Volcano Jobs use.
    """

    __slots__ = (
        "allocated",
        "line",
        "offline",
        "reserved",
        "uncounted_pods",
        "unlifted",
        "unlifted_cpu_memory",
        "waiting",
    )

    def __init__(self) -> None:
        self.allocated: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.offline: dict[str, int] = {}
        self.unlifted: dict[str, int] = {}
        self.unlifted_cpu_memory: dict[str, int] = {}
        self.uncounted_pods: dict[str, Entry] = {}
        self.line = Line()

    @property
    def waiting_pods(self) -> Mapping[str, Entry]:
        """The waiting pods by UID."""
        return self.line.pods

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
            self.line.put(entry)
        elif entry.uncounted:
            self.uncounted_pods[entry.pod.uid] = entry
        self._add(entry, 1)

    def unbook(self, entry: Entry) -> None:
        """Takes out an entry that was booked."""
        if entry.stage is Stage.WAITING:
            self.line.drop(entry)
        elif entry.uncounted:
            self.uncounted_pods.pop(entry.pod.uid, None)
        self._add(entry, -1)

    def _add(self, entry: Entry, sign: int) -> None:
        add(self._sums(entry.stage), entry.charged, sign)
        if entry.stage is not Stage.WAITING and owned_by_job(entry.pod):
            add(self.offline, entry.charged, sign)
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
