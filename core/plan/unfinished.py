"""Gangs that were cut short: since when, and whose members are given back so that another gang can be finished.

Two gangs of four, three members of each let in and quota for six: neither can start, neither lets the other one start, and both
come before everything else. One of them has to give back what it holds. The same goes for members that were let in one by one
while nobody knew of their PodGroup, and where a task is short of the members that it has to have (`minTaskMember`); but these
come before nobody.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.objects import Group, Pod
from core.queues.group_minimum import Standing, Tally, minimum_of
from core.queues.ledger import Ledger
from core.settings import ReservationSettings
from core.stage import Stage
from core.steps import Pace, Steps

_SECOND: Final = 1_000_000

_PAUSE_S: Final = 10
"""How long those that were not given back have, after one was, to be finished by what that has set free."""

_STUCK_S: Final = 60
"""When none of its members has gone for so long, a gang is passed over for the next one."""

_NEVER: Final = -1

_IN_ONE_STEP: Final = 100
"""Members of a gang that are looked at."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A gang of which fewer members are in than have to be, and that holds something or waits for more.

    `recorded` says whether so many were let in together; else it is the minimum of its PodGroup, or those `of_tasks` that have a
    minimum of their own.
    """

    group: Group
    queue: str
    counted: int
    lacking: int
    unbound: Sequence[Pod]
    """The members that hold quota and have no node."""
    waiting: Pod | None
    """One of those that wait at our gate, if any does."""
    recorded: bool
    of_tasks: Mapping[str, int]

    @property
    def concerned(self) -> Sequence[Pod]:
        """On whom something is said of a gang without a PodGroup: those that hold quota for nothing, else one that waits."""
        return self.unbound or ([] if self.waiting is None else [self.waiting])

    @property
    def rank(self) -> tuple[int, int, str]:
        """The last one gives back what it holds first: that of the least priority, of these the youngest."""
        priority = max((pod.priority for pod in self.unbound), default=0)
        return -priority, self.group.created, self.group.key


def unfinished_gangs(ledger: Ledger, known: Iterable[str] = ()) -> Iterator[Unfinished | None]:
    """All of them, as they are now; None wherever others may come to their turn.

    Those that were `known` before, by `namespace/name`, are looked at too: while a lift is tried that would finish one, the
    books do not tell that it is short.
    """
    for key in dict.fromkeys((*ledger.groups.short, *known)):
        seen = _Seen(ledger, key)
        for _ in seen.look():
            yield None
        yield seen.gang if seen.cut_short else None


class _Seen:
    """What is found in one look at a gang, which costs as much as it has members."""

    def __init__(self, ledger: Ledger, key: str) -> None:
        self.cut_short = False
        """Whether it is unfinished by what the cluster shows: a lift that is tried, or refused again and again, finishes none."""
        self.gang: Unfinished | None = None
        """None where nobody is on the way: the others have ended, and the gang is as whole as it will ever be."""
        self._ledger = ledger
        self._key = key

    def look(self) -> Steps[None]:
        """Goes through the members."""
        ledger, tally, pace = self._ledger, Tally(), Pace(_IN_ONE_STEP)
        queue, group, waiting = "", None, None
        unbound: list[Pod] = []
        for uid in ledger.members_of(self._key):
            if pace.due():
                yield
            observed = ledger.observed(uid)
            if observed is not None:
                tally.add(Standing.of(observed, ledger.stages), 1)
            entry = ledger.entry(uid)
            if entry is None:
                continue
            group = group or ledger.group_of(entry.pod)
            # A lift that is tried is none yet, though it is booked.
            if entry.stage is Stage.WAITING or (observed is not None and observed.gated):
                waiting = waiting or entry.pod
                continue
            queue = queue or entry.queue
            if entry.stage is Stage.RESERVED:
                unbound.append(observed or entry.pod)
        if group is None:
            return
        progress = tally.progress(minimum_of(group))
        self.cut_short = progress.short
        if waiting is not None or unbound:
            self.gang = Unfinished(
                group,
                queue or group.queue,
                progress.counted,
                max(progress.missing, sum(progress.missing_tasks.values())),
                unbound,
                waiting,
                recorded=progress.unfinished,
                of_tasks=progress.missing_tasks,
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
        self._gangs: dict[str, Unfinished] = {}
        """Those that hold something or wait for more, as they were seen last."""
        self._looked = _NEVER
        """The number of changes that the last look has taken in."""
        self._told: dict[str, Unfinished] = {}
        """As they were when they were told of."""
        self._over: list[Unfinished] = []
        self._turn = ""
        """The gang that gives back what it holds."""
        self._left = 0
        self._left_at = 0
        self._next_at = 0
        self._stuck: set[str] = set()
        self._condemned: dict[str, str] = {}

    @property
    def known(self) -> Collection[str]:
        """The gangs that the last look has found unfinished, as `namespace/name`."""
        return self._since.keys()

    def restart(self) -> None:
        """Nothing has been seen, said or done."""
        self._since.clear()
        self._gangs.clear()
        self._looked = _NEVER
        self._told.clear()
        self._over.clear()
        self._stuck.clear()
        self._condemned.clear()
        self._turn, self._next_at = "", 0

    def look(self, now: int) -> Steps[None]:
        """Takes note of which gangs are unfinished now; costs as much as those have members that have changed."""
        groups = self._ledger.groups
        looked, changed = groups.changed.changes, groups.changed.since(self._looked)
        # One that only a lift under way has finished is finished when the watch shows it, of which the books tell nothing.
        shown = [key for key in self._since if key not in groups.short]
        found = groups.short if changed is None else reversed(changed)
        for key in dict.fromkeys((*found, *shown)):
            yield from self._look_at(key, now)
            yield
        self._stuck.intersection_update(self._since)
        self._over += [self._told.pop(key) for key in tuple(self._told) if self._is_over(key)]
        self._looked = looked

    def _is_over(self, key: str) -> bool:
        """Whether what was said of a gang is to be taken back: it is finished, or it was said to one that waits, and others hold quota by now."""
        found = self._gangs.get(key)
        return key not in self._since or bool(
            found is not None and found.unbound and not self._told[key].unbound
        )

    def _look_at(self, key: str, now: int) -> Steps[None]:
        seen = _Seen(self._ledger, key)
        yield from seen.look()
        known, short = key in self._since, key in self._ledger.groups.short
        self._gangs.pop(key, None)
        if not ((known and short) or (seen.cut_short and (known or short))):
            self._since.pop(key, None)
            return
        self._since.setdefault(key, now)
        if seen.gang is not None:
            self._gangs[key] = seen.gang

    def take_late(self, now: int) -> Iterator[Unfinished]:
        """Those of which something is to be said, each once."""
        after_s = self._settings.warn_after_s
        if self._settings.unfinished_after_s is not None:
            after_s = min(after_s, self._settings.unfinished_after_s)
        for key in self._overdue(now, after_s):
            found = self._gangs.get(key)
            if found is not None and key not in self._told:
                self._told[key] = found
                yield found

    def take_over(self) -> Sequence[Unfinished]:
        """Those of which something was said that holds no longer, each once, as they were then."""
        over, self._over = self._over, []
        return over

    def take_condemned(self, now: int) -> Steps[list[Pod]]:
        """The members that are to be deleted now, each once, of one gang at a time.

        Only members that somebody makes anew. When one gang has none left the next one has its turn, unless it is finished
        by then.
        """
        after_s = self._settings.unfinished_after_s
        if after_s is None:
            return []
        found: list[Pod] = []
        if self._turn:
            found = yield from self._members(self._turn, now, after_s)
            if len(found) != self._left:
                self._left, self._left_at = len(found), now
            elif now - self._left_at > _STUCK_S * _SECOND:
                self._stuck.add(self._turn)
                found = []
            if not found:
                self._turn, self._next_at = "", now + min(after_s, _PAUSE_S) * _SECOND
                self._condemned.clear()
        if not self._turn and now >= self._next_at:
            self._turn, found = yield from self._last(now, after_s)
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

    def _last(self, now: int, after_s: int) -> Steps[tuple[str, list[Pod]]]:
        """The gang that gives back first, and the members of it that are to go."""
        ranked: list[tuple[tuple[int, int, str], list[Pod]]] = []
        for key in self._overdue(now, after_s):
            members = [] if key in self._stuck else (yield from self._members(key, now, after_s))
            if members:
                ranked.append((self._gangs[key].rank, members))
            yield
        rank, members = max(ranked, key=lambda each: each[0], default=((0, 0, ""), []))
        return rank[2], members

    def _members(self, key: str, now: int, after_s: int) -> Steps[list[Pod]]:
        """Those that have waited for a node for so long, and that somebody makes anew."""
        gang, found, pace = self._gangs.get(key), list[Pod](), Pace(_IN_ONE_STEP)
        for pod in gang.unbound if gang is not None and key in self._since else ():
            if pace.due():
                yield
            if pod.owner is not None and self._waited(pod, now) >= after_s * _SECOND:
                found.append(pod)
        return found

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
        members = f"{all_in} members that have to start together"
        place = "They were let in one by one, or before the minimum was raised, and lack"
        if gang.of_tasks:
            lost = ", ".join(f"{count} of task {task}" for task, count in sorted(gang.of_tasks.items()))
            place = f"It does not start without {lost}, and lacks"
    unbound = len(gang.unbound)
    hold = "holds quota and has" if unbound == 1 else "hold quota and have"
    counted = f"{gang.counted} {'is' if gang.counted == 1 else 'are'} in"
    return reasons.GANG_UNFINISHED, (
        f"Queue <{gang.queue}>: of {members} {counted}, for more than {after_s} s; {unbound} {hold} "
        f"no node. {place} {gang.lacking} (the events of those that wait say why); {then}"
    )


def given_back_notice(pod: Pod, queue: str, settings: ReservationSettings) -> tuple[str, str]:
    """The code and the words for an event on a member that was deleted."""
    return reasons.GANG_GIVEN_BACK, (
        f"Queue <{queue}>: deleted, for too few members of {pod.group_title} were in for more than "
        f"{settings.unfinished_after_s} s, and this one had quota and no node; what its owner creates instead waits for "
        "quota together with the others"
    )
