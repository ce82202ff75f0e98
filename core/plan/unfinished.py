"""Gangs that were cut short: since when, and whose members are given back so that another gang can be finished.

Two gangs of four, three members of each let in and quota for six: neither can start, neither lets the other one start, and both
come before everything else. One of them has to give back what it holds. The same goes for members that were let in one by one
while nobody knew of their PodGroup, but these come before nobody.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.objects import Group, Pod
from core.queues.group_minimum import progress_of
from core.queues.ledger import Ledger
from core.settings import ReservationSettings
from core.stage import Stage

_SECOND: Final = 1_000_000

_PAUSE_S: Final = 10
"""How long those that were not given back have, after one was, to be finished by what that has set free."""

_STUCK_S: Final = 60
"""When none of its members has gone for so long, a gang is passed over for the next one."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A gang of which fewer members are in than have to be, and that holds something or waits for more.

    `recorded` says whether so many were let in together; else it is the minimum of its PodGroup.
    """

    group: Group
    queue: str
    counted: int
    lacking: int
    unbound: Sequence[Pod]
    """The members that hold quota and have no node."""
    recorded: bool

    @property
    def rank(self) -> tuple[int, int, str]:
        """The last one gives back what it holds first: that of the least priority, of these the youngest."""
        priority = max((pod.priority for pod in self.unbound), default=0)
        return -priority, self.group.created, self.group.key


def unfinished_gangs(ledger: Ledger) -> Iterator[Unfinished]:
    """All of them, as they are now."""
    for key in tuple(ledger.groups.short):
        found = _unfinished(ledger, key) if _as_observed(ledger, key) else None
        if found is not None:
            yield found


def _as_observed(ledger: Ledger, key: str) -> bool:
    """Whether a gang is unfinished by what the cluster shows: a lift that is tried, or refused again and again, finishes none."""
    found = next(iter(ledger.entries_of(key)), None)
    group = ledger.group_of(found.pod) if found is not None else None
    if group is None:
        return False
    observed = (ledger.observed(pod.uid) for pod in ledger.members(group))
    return progress_of(group, [pod for pod in observed if pod is not None], ledger.stages).short


def _unfinished(ledger: Ledger, key: str) -> Unfinished | None:
    """None where nobody is on the way: the others have ended, and the gang is as whole as it will ever be."""
    queue, group, waits = "", None, False
    unbound: list[Pod] = []
    for entry in ledger.entries_of(key):
        group = group or ledger.group_of(entry.pod)
        if entry.stage is Stage.WAITING:
            waits = True
            continue
        queue = queue or entry.queue
        if entry.stage is Stage.RESERVED:
            unbound.append(ledger.observed(entry.pod.uid) or entry.pod)
    if group is None or not (waits or unbound):
        return None
    progress, lacking = ledger.groups.progress(group), ledger.groups.lacks(key)
    return Unfinished(
        group, queue or group.queue, progress.counted, lacking, unbound, recorded=progress.unfinished
    )


class UnfinishedGangs:
    """Since when each of them is known, in microseconds of whatever clock the caller goes by.

    `reserved_since` says the same of a member without a node, None where it holds no quota.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: ReservationSettings,
        reserved_since: Callable[[str], int | None],
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._reserved_since = reserved_since
        self._since: dict[str, int] = {}
        self._told: set[str] = set()
        self._turn = ""
        """The gang that gives back what it holds."""
        self._left = 0
        self._left_at = 0
        self._next_at = 0
        self._stuck: set[str] = set()
        self._condemned: dict[str, str] = {}

    def restart(self) -> None:
        """Nothing has been seen, said or done."""
        self._since.clear()
        self._told.clear()
        self._stuck.clear()
        self._condemned.clear()
        self._turn, self._next_at = "", 0

    def look(self, now: int) -> None:
        """Takes note of which gangs are unfinished now."""
        known, short = self._since, self._ledger.groups.short
        self._since = {
            key: known.get(key, now)
            for key in {**known, **dict.fromkeys(short)}
            if (key in known and key in short) or _as_observed(self._ledger, key)
        }
        for kept in (self._told, self._stuck):
            kept.intersection_update(self._since)

    def take_late(self, now: int) -> Iterator[Unfinished]:
        """Those of which something is to be said, each once."""
        after_s = self._settings.warn_after_s
        if self._settings.unfinished_after_s is not None:
            after_s = min(after_s, self._settings.unfinished_after_s)
        for key in [key for key in self._overdue(now, after_s) if key not in self._told]:
            found = _unfinished(self._ledger, key)
            if found is not None:
                self._told.add(key)
                yield found

    def take_condemned(self, now: int) -> list[Pod]:
        """The members that are to be deleted now, each once, of one gang at a time.

        Only members that somebody makes anew. When one gang has none left the next one has its turn, unless it is finished
        by then.
        """
        after_s = self._settings.unfinished_after_s
        if after_s is None:
            return []
        found: list[Pod] = []
        if self._turn:
            found = self._members(self._turn, now, after_s)
            if len(found) != self._left:
                self._left, self._left_at = len(found), now
            elif now - self._left_at > _STUCK_S * _SECOND:
                self._stuck.add(self._turn)
                found = []
            if not found:
                self._turn, self._next_at = "", now + min(after_s, _PAUSE_S) * _SECOND
                self._condemned.clear()
        if not self._turn and now >= self._next_at:
            self._turn = self._last(now, after_s)
            found = self._members(self._turn, now, after_s) if self._turn else []
            self._left, self._left_at = len(found), now
        new = [pod for pod in found if pod.uid not in self._condemned]
        self._condemned.update((pod.uid, self._turn) for pod in new)
        return new

    def condemned(self, uid: str) -> Pod | None:
        """The pod as it is now, if `take_condemned` has returned it and it still is to be deleted."""
        key = self._condemned.get(uid)
        if key is None or key not in self._since or key not in self._ledger.groups.short:
            # Should the lift that finishes the gang come to nothing it is named again.
            self._condemned.pop(uid, None)
            return None
        entry = self._ledger.entry(uid)
        if entry is None or entry.stage is not Stage.RESERVED or entry.pod.owner is None:
            return None
        return self._ledger.observed(uid)

    def _overdue(self, now: int, after_s: int) -> list[str]:
        return [key for key, since in self._since.items() if since + after_s * _SECOND <= now]

    def _last(self, now: int, after_s: int) -> str:
        overdue = (key for key in self._overdue(now, after_s) if key not in self._stuck)
        found = [_unfinished(self._ledger, key) for key in overdue if self._members(key, now, after_s)]
        ranks = [gang.rank for gang in found if gang is not None]
        return max(ranks)[2] if ranks else ""

    def _members(self, key: str, now: int, after_s: int) -> list[Pod]:
        """Those that have waited for a node for so long, and that somebody makes anew."""
        found = _unfinished(self._ledger, key)
        members = found.unbound if found is not None and key in self._since else ()
        return [
            pod for pod in members if pod.owner is not None and self._waited(pod, now) >= after_s * _SECOND
        ]

    def _waited(self, pod: Pod, now: int) -> int:
        since = self._reserved_since(pod.uid)
        return -1 if since is None else now - since


def unfinished_notice(gang: Unfinished, settings: ReservationSettings) -> tuple[str, str]:
    """The code and the words for an event on the PodGroup."""
    then = "set reservation.unfinishedAfter, or delete pods of it or of another such gang by hand"
    after_s = settings.warn_after_s
    if settings.unfinished_after_s is not None:
        after_s = min(after_s, settings.unfinished_after_s)
        then = f"what it holds is given back after {settings.unfinished_after_s} s, younger gangs first"
    all_in = gang.counted + gang.lacking
    if gang.recorded:
        members, place = (
            f"{all_in} members that were let in together",
            "The gang comes before all others, and lacks",
        )
    else:
        members, place = (
            f"{all_in} members that have to start together",
            "They were let in one by one, and lack",
        )
    return reasons.GANG_UNFINISHED, (
        f"Queue <{gang.queue}>: of {members} {gang.counted} are in, for more than {after_s} s; {len(gang.unbound)} hold quota "
        f"and have no node. {place} {gang.lacking}; {then}"
    )


def given_back_notice(pod: Pod, queue: str, settings: ReservationSettings) -> tuple[str, str]:
    """The code and the words for an event on a member that was deleted."""
    return reasons.GANG_GIVEN_BACK, (
        f"Queue <{queue}>: deleted, for too few members of PodGroup {pod.namespace}/{pod.group_name} were in for more than "
        f"{settings.unfinished_after_s} s, and this one had quota and no node; what its owner creates instead waits for "
        "quota together with the others"
    )
