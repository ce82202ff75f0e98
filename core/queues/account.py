"""The sums of one queue."""

from collections.abc import Mapping
from typing import Final

from core.queues.amounts import add
from core.queues.attribution import owned_by_job
from core.queues.entry import Entry
from core.queues.line import Line
from core.stage import Stage


class Sums:
    """What pods use, hold and wait for, in thousandths, by stage.

    `unlifted` is the part of `reserved` that was granted to nobody, `unlifted_cpu_memory` what these pods use besides. `offline` is
    the part of `allocated` and `reserved` that pods of Volcano Jobs use.
    """

    __slots__ = ("allocated", "offline", "reserved", "unlifted", "unlifted_cpu_memory", "waiting")

    def __init__(self) -> None:
        self.allocated: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.offline: dict[str, int] = {}
        self.unlifted: dict[str, int] = {}
        self.unlifted_cpu_memory: dict[str, int] = {}

    def used(self, key: str) -> int:
        """Allocated plus reserved."""
        return self.allocated.get(key, 0) + self.reserved.get(key, 0)

    def add(self, entry: Entry, sign: int) -> None:
        """Adds an entry, or takes it out with a `sign` of -1."""
        if entry.stage is Stage.IGNORED:
            raise ValueError("an ignored pod is not booked")
        charged = entry.charged
        if entry.stage is Stage.WAITING:
            add(self.waiting, charged, sign)
            return
        add(self.allocated if entry.stage is Stage.ALLOCATED else self.reserved, charged, sign)
        if owned_by_job(entry.pod):
            add(self.offline, charged, sign)
        if entry.unlifted:
            add(self.unlifted, charged, sign)
            add(self.unlifted_cpu_memory, entry.demand.cpu_memory, sign)

    def add_all(self, others: "Sums", sign: int) -> None:
        """The same with everything that others have added up."""
        for part in Sums.__slots__:
            add(getattr(self, part), getattr(others, part), sign)


NOTHING: Final = Sums()
"""The sums of nobody; not to be changed."""


class Account(Sums):
    """One queue's sums, its waiting pods in line, and those whose cards count as none.

    The latter have a node, or may get one any moment, and name a card that nobody can count any more.
    """

    __slots__ = ("line", "uncounted_pods")

    def __init__(self) -> None:
        super().__init__()
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

    def book(self, entry: Entry) -> None:
        """Adds an entry."""
        if entry.stage is Stage.WAITING:
            self.line.put(entry)
        elif entry.uncounted:
            self.uncounted_pods[entry.pod.uid] = entry
        self.add(entry, 1)

    def unbook(self, entry: Entry) -> None:
        """Takes out an entry that was booked."""
        if entry.stage is Stage.WAITING:
            self.line.drop(entry)
        elif entry.uncounted:
            self.uncounted_pods.pop(entry.pod.uid, None)
        self.add(entry, -1)

    def let_in(self, waiting: Entry) -> None:
        """The same as to unbook a waiting entry, and to book it as reserved with a record of its lift."""
        self.line.drop(waiting)
        add(self.waiting, waiting.charged, -1)
        add(self.reserved, waiting.charged, 1)
        if owned_by_job(waiting.pod):
            add(self.offline, waiting.charged, 1)
