"""A gang tried on the books: members are lifted in the ledger one by one, and taken back when the rest does not fit.

The search may be paused, and the ledger follows the cluster meanwhile. What was booked stays booked, so nobody else is given
it; whether the trial still makes sense is looked at when it goes on.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lineup import Member
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import Pace, Steps

NO_CARD = ""
"""The one alternative of a member without cards."""

_IN_ONE_STEP: Final = 8
"""Members that are given back in about half a millisecond."""

_CHECKED_IN_A_STEP: Final = 200
"""Members that are compared with what they were in as long."""

_NONE_SEEN: Final = -1
"""In place of the count of changes: whatever there is has yet to be looked at."""


class OvertakenError(Exception):
    """A member, or the queue, is not any more what it was when the trial began: what was decided is void."""


class LedgerTrial:
    """Implements core.plan.gang.Trial. `shortfall_of` says why an entry cannot have a card now, `lift` books it."""

    def __init__(
        self,
        ledger: Ledger,
        entries: Mapping[str, Entry],
        shortfall_of: Callable[[Entry, str], Steps[Refusal | None]],
        lift: Callable[[Entry, str], Lift],
        *,
        group: str = "",
        version: int = 0,
    ) -> None:
        self._ledger = ledger
        self._entries = entries
        """The members, by UID."""
        self._group = group
        self._version = version
        """That of the group, see GroupBook, with which the trial was begun, and what it has booked since."""
        self._queue_name = next(iter(entries.values())).queue if entries else ""
        self._queue = ledger.queues.get(self._queue_name)
        # While some are left behind that hold something nobody knows what is left, so that is looked at first.
        self._changes = ledger.changes if ledger.sums_settled else _NONE_SEEN
        self._touched = ledger.touched.changes
        self._shortfall_of = shortfall_of
        self._lift = lift
        self._taken: list[str] = []
        self.lifts: dict[str, Lift] = {}
        self.most = 0
        """The greatest number of members that fitted together."""
        self._short_at = 0
        self.shortfall: Refusal | None = None
        """Why one more did not, where the trial came furthest."""
        self.obstacles: set[str] = set()
        """The codes of everything that stood in the way."""

    def take(self, member: Member, card: str) -> Steps[bool]:
        """Lifts the member in the ledger; false, and nothing changed, when it does not fit. Raises OvertakenError."""
        yield from self._check()
        entry = self._entry(member.uid)
        shortfall = yield from self._shortfall_of(entry, card)
        while self._ledger.changes != self._changes:
            yield from self._check()
            entry = self._entry(member.uid)
            shortfall = yield from self._shortfall_of(entry, card)
        if shortfall is not None:
            self.obstacles.add(shortfall.code)
            if self.shortfall is None or len(self._taken) > self._short_at:
                self.shortfall, self._short_at = shortfall, len(self._taken)
            return False
        with self._ledger.wakeups.muted(), self._of_its_own():
            self.lifts[member.uid] = self._lift(entry, card)
        self._has_seen_all()
        self._taken.append(member.uid)
        self.most = max(self.most, len(self._taken))
        return True

    def lift_again(self, lift: Lift, anew: Callable[[Entry, Lift], Lift]) -> Steps[None]:
        """Books a member anew that was taken, as `anew` does it. Raises OvertakenError."""
        yield from self._check()
        self._retract(lift)
        with self._ledger.wakeups.muted(), self._of_its_own():
            self.lifts[lift.pod.uid] = anew(self._entry(lift.pod.uid), lift)
        self._has_seen_all()

    def give_back(self) -> None:
        """Takes the last lift back."""
        uid = self._taken.pop()
        self._retract(self.lifts.pop(uid))

    def give_all_back(self) -> Steps[None]:
        """Takes every lift back that still stands."""
        while self._taken:
            for _ in range(min(_IN_ONE_STEP, len(self._taken))):
                self.give_back()
            yield

    def drop(self) -> None:
        """The same at once, for steps that nobody goes on with; the ledger books many of them anew only when it is settled."""
        with self._ledger.wakeups.muted():
            self._ledger.retract_all([lift.lifted for lift in self.lifts.values()])
        for lift in self.lifts.values():
            self._tell_of(lift.pod)
        self._taken.clear()
        self.lifts.clear()

    def _retract(self, lift: Lift) -> None:
        unchanged = self._ledger.changes == self._changes
        with self._ledger.wakeups.muted(), self._of_its_own():
            self._ledger.retract(lift.lifted)
        if unchanged:
            self._has_seen_all()
        self._tell_of(lift.pod)

    def _tell_of(self, pod: Pod) -> None:
        """Has a member that has changed since it was taken looked at: it was booked as taken, and nobody has been told."""
        observed = self._ledger.observed(pod.uid)
        if observed is not pod and observed != pod:
            entry = self._ledger.entry(pod.uid)
            queues = {self._queue_name, entry.queue if entry is not None else self._queue_name}
            self._ledger.wakeups.help(*queues)

    def _has_seen_all(self) -> None:
        """Takes what has changed last for the trial's own doing."""
        self._changes, self._touched = self._ledger.changes, self._ledger.touched.changes

    @contextmanager
    def _of_its_own(self) -> Iterator[None]:
        """What becomes of the group within is the trial's own doing."""
        groups = self._ledger.groups
        stands = groups.version(self._group) == self._version
        yield
        if stands:
            self._version = groups.version(self._group)

    def _entry(self, uid: str) -> Entry:
        """A member that is not taken, in its newest state."""
        entry = self._ledger.current(self._entries[uid])
        if entry is None:
            raise OvertakenError
        return entry

    def _check(self) -> Steps[None]:
        """Raises OvertakenError unless every member, and the group, still is what it was, those that were taken as they were booked.

        Also while pods are left to be booked anew, for nobody knows what is left before that. Costs what has changed since the
        last time; nobody else lets members in, so of that nothing is missed.
        """
        ledger = self._ledger
        while ledger.changes != self._changes:
            touched = ledger.touched.since(self._touched)
            self._has_seen_all()
            if not ledger.sums_settled or not self._same_queue():
                raise OvertakenError
            pace = Pace(_CHECKED_IN_A_STEP)
            for uid in self._entries if touched is None else touched:
                if pace.due():
                    yield
                if uid in self._entries and not self._stands(uid):
                    raise OvertakenError
        if ledger.groups.version(self._group) != self._version:
            raise OvertakenError

    def _same_queue(self) -> bool:
        """Whether the queue says what it said; Volcano writes its status each second."""
        now, before = self._ledger.queues.get(self._queue_name), self._queue
        if now is not before and (now is None or not now.says_the_same(before)):
            return False
        self._queue = now
        return True

    def _stands(self, uid: str) -> bool:
        """Whether a member is what it was. Of one that was taken another state than the booked one can never be lifted so.

        Nor can one whose claims are others by now than it was taken with.
        """
        ledger, lift = self._ledger, self.lifts.get(uid)
        if lift is None:
            return ledger.current(self._entries[uid]) is not None
        observed = ledger.observed(uid)
        same = ledger.assumed(uid) is lift.lifted and (observed is lift.pod or observed == lift.pod)
        return same and ledger.devices.records(lift.pod).items() <= lift.records.items()


def member_of(ledger: Ledger, entry: Entry, *, tight: bool) -> Member:
    """The entry as the search sees it; members alike in all that decides about them are interchangeable.

    CPU and memory do where they are `tight`.
    """
    pod, demand = entry.pod, entry.demand
    alternatives = demand.card.alternatives if demand.card is not None else (NO_CARD,)
    milli = demand.card.milli if demand.card is not None else 0
    # What a pod takes of its queue says all that it leaves to others, unless it takes something else besides.
    weight = milli, tuple(sorted(demand.cpu_memory.items())) if tight else ()
    more = demand.mgpu is not None or ledger.devices.concerns(pod)
    kind: Hashable = (
        pod.task,
        alternatives,
        weight,
        demand.mgpu,
        entry.beside_shares,
        ledger.devices.kind(pod),
        pod.node_rules,
    )
    return Member(pod.uid, pod.task, alternatives, kind, kind if more else weight)
