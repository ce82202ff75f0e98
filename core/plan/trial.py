"""A gang tried on the books: members are lifted in the ledger one by one, and taken back when the rest does not fit."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from core.names import TASK_SPEC_ANNOTATION
from core.plan.gang import Member
from core.queues.account import Entry
from core.queues.ledger import Ledger
from core.shortfall import Shortfall

L = TypeVar("L")

NO_CARD = ""
"""The one alternative of a member without cards."""


class LedgerTrial(Generic[L]):
    """Implements core.plan.gang.Trial. `shortfall_of` says why an entry cannot have a card now, `lift` books it."""

    def __init__(
        self,
        ledger: Ledger,
        entries: Sequence[Entry],
        shortfall_of: Callable[[Entry, str], Shortfall | None],
        lift: Callable[[Entry, str], L],
    ) -> None:
        self._ledger = ledger
        self._entries: Mapping[str, Entry] = {entry.pod.uid: entry for entry in entries}
        self._shortfall_of = shortfall_of
        self._lift = lift
        self._taken: list[str] = []
        self.lifts: dict[str, L] = {}
        self.most = 0
        """The greatest number of members that fitted together."""
        self.shortfall: Shortfall | None = None
        """Why one more did not, where the trial came furthest."""
        self.obstacles: set[str] = set()
        """The codes of everything that stood in the way."""

    def take(self, member: Member, card: str) -> bool:
        """Lifts the member in the ledger; false, and nothing changed, when it does not fit."""
        entry = self._entries[member.uid]
        shortfall = self._shortfall_of(entry, card)
        if shortfall is not None:
            self.obstacles.add(shortfall.reason)
            if self.shortfall is None or len(self._taken) > self.most:
                self.shortfall = shortfall
            return False
        self.lifts[member.uid] = self._lift(entry, card)
        self._taken.append(member.uid)
        self.most = max(self.most, len(self._taken))
        return True

    def give_back(self) -> None:
        """Takes the last lift back."""
        uid = self._taken.pop()
        del self.lifts[uid]
        self._ledger.forget(uid)


def member_of(ledger: Ledger, entry: Entry) -> Member:
    """The entry as the search sees it; members alike in all that decides about them are interchangeable."""
    pod, demand = entry.pod, entry.demand
    alternatives = demand.card.alternatives if demand.card is not None else (NO_CARD,)
    task = pod.annotations.get(TASK_SPEC_ANNOTATION, "")
    milli = demand.card.milli if demand.card is not None else 0
    # What a pod takes of its queue says all that it leaves to others, unless it takes something else besides.
    weight = milli, tuple(sorted(demand.cpu_memory.items()))
    more = demand.mgpu is not None or bool(pod.claims)
    kind: Hashable = pod.uid
    if not pod.node_selector and not pod.affinity:
        kind = (task, alternatives, weight, demand.mgpu, ledger.devices.kind(pod))
    return Member(pod.uid, task, alternatives, kind, pod.uid if more else weight)
