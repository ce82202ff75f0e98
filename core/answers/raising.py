"""The smallest quota that would let a waiting pod in, those before it in line served first as ever."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

from core import reasons
from core.answers.quota import command, with_limit, written
from core.answers.remedy import Case, Found, Step
from core.answers.shortage import Figure, is_device, levels_of, limits_for, shortest_for
from core.answers.whatif import Change
from core.answers.words import amount
from core.dra.amounts import thousandths
from core.objects import Queue
from core.plan.decision import Hold
from core.plan.units import units_of
from core.queues.amounts import CPU, MEMORY
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import finish

QUOTA: Final = frozenset(
    {
        reasons.EMPTY_QUEUE_CAPABILITY,
        reasons.CARD_QUOTA_MALFORMED,
        reasons.INSUFFICIENT_SCALAR_QUOTA,
        reasons.INSUFFICIENT_CPU_QUOTA,
        reasons.INSUFFICIENT_MEMORY_QUOTA,
        reasons.INSUFFICIENT_DEVICE_QUOTA,
        reasons.MIXED_CARDS,
    }
)
"""What more quota helps against."""

_ONE_BY_ONE: Final = 24
_MOST_SUMS: Final = 1 << 16
_KEYS: Final = 4
_SWEEPS: Final = 3


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit that may be raised, and by how much, the least first; in thousandths."""

    figure: Figure
    amounts: tuple[int, ...]


_Askers = tuple[str, ...]
"""The UIDs of pods."""

Raise = tuple[int, ...]
"""By how much each limit of a search is raised."""


def raise_quota(case: Case) -> Found | None:
    """More of one key of the queue, or of those above it whose limits hold as well; of several keys where one is not enough.

    Of several cards that would do, the one that takes the least more.
    """
    if case.hold.why.code not in QUOTA and not _by_choice(case):
        return None
    short = _short(case)[:_KEYS]
    found = [one for key in short if (one := _raised(case, [key])) is not None]
    if len(short) > 1 and not any(one.hold is None for one in found):
        together = _raised(case, short)
        found += [] if together is None else [together]
    return min(found, key=_size, default=None)


def _by_choice(case: Case) -> bool:
    """Whether it waits for the free ones among several cards, of which others are free and short of quota."""
    asked = case.obstacle.demand.card
    return case.hold.why.code == reasons.NO_FREE_CARD and asked is not None and len(asked.alternatives) > 1


def _size(found: Found) -> tuple[bool, int, int]:
    return found.hold is not None, len(found.steps), sum(step.amount for step in found.steps)


def _short(case: Case) -> list[str]:
    """The keys that are short once everybody is lifted who can be, as the code says."""
    with case.whatif.made(case.change):
        case.whatif.decide()
        entry = case.obstacle
        figures = finish(shortest_for(case.whatif.ledger, _together(case.whatif.ledger, entry)))
        asked = entry.demand.card
    match case.hold.why.code:
        case reasons.INSUFFICIENT_CPU_QUOTA:
            return [CPU]
        case reasons.INSUFFICIENT_MEMORY_QUOTA:
            return [MEMORY]
        case reasons.INSUFFICIENT_DEVICE_QUOTA:
            return [figure.key for figure in figures if is_device(figure.key) and figure.missing]
        case _:
            cards = set(asked.alternatives) if asked is not None else set[str]()
            short = [figure.key for figure in figures if figure.missing and figure.key not in (CPU, MEMORY)]
            return sorted(short, key=lambda key: key not in cards)


def _together(ledger: Ledger, entry: Entry) -> list[Entry]:
    for unit in finish(units_of(ledger, entry.queue)):
        if unit.lacks_members and any(one.pod.uid == entry.pod.uid for one in unit.entries):
            return list(unit.entries)
    return [entry]


def _raised(case: Case, keys: Sequence[str]) -> Found | None:
    """The smallest raise of these keys that lifts the pod; where none does, the smallest after which it is not for want of them."""
    ledger = case.whatif.ledger
    with case.whatif.made(case.change):
        entry = case.current
        figures = limits_for(ledger, _together(ledger, case.obstacle))
        limits = [_limit(ledger, entry, one) for one in figures if one.key in keys]
        queues = {one.queue: ledger.queues[one.queue] for one in figures if one.queue in ledger.queues}
    search = _Search(case, [one for one in limits if one.figure.queue in queues], queues)
    best = search.least(lambda hold: hold is None)
    if best is None:
        best = search.least(lambda hold: hold is None or _past(hold, case.hold))
    return None if best is None else search.found(best)


def _limit(ledger: Ledger, entry: Entry, figure: Figure) -> _Limit:
    sums = _sums(ledger, entry, figure.key, figure.queue)
    left = (figure.limit or 0) - figure.used
    return _Limit(figure, tuple(more for some in sums if (more := some - left) > 0))


def _past(hold: Hold, before: Hold) -> bool:
    """Whether the pod waits for something else by now."""
    return hold.why.code != before.why.code or hold.behind != before.behind


class _Search:
    """Looks for the least raise of several limits together: of none of them less would do, the others being so."""

    def __init__(self, case: Case, limits: Sequence[_Limit], queues: dict[str, Queue]) -> None:
        self._case = case
        self._limits = limits
        self._queues = queues
        self._nothing = (0,) * len(limits)
        self._tried: dict[Raise, Hold | None] = {self._nothing: case.hold}

    def least(self, good: Callable[[Hold | None], bool]) -> Raise | None:
        """The raise after which something good is said: of all limits ample, and each then as low as can be. Raises SpentError."""
        best = tuple(one.amounts[-1] if one.amounts else 0 for one in self._limits)
        if len(self._limits) == 1 or not good(self._outcome(best)):
            # With less others may be kept out that take what is ample: room on the nodes, for one.
            places = range(len(self._limits))
            alone = (
                self._lowest(self._nothing, place, self._limits[place].amounts, good) for place in places
            )
            return next((one for one in alone if one is not None), None)
        for _ in range(_SWEEPS):
            before = best
            for place, limit in enumerate(self._limits):
                lower = [more for more in (0, *limit.amounts) if more < best[place]]
                best = self._lowest(best, place, lower, good) or best
            if best == before:
                break
        return best

    def _lowest(
        self, base: Raise, place: int, amounts: Sequence[int], good: Callable[[Hold | None], bool]
    ) -> Raise | None:
        """With the least of these amounts for one limit that will do."""

        def does(more: int) -> bool:
            return good(self._outcome((*base[:place], more, *base[place + 1 :])))

        found = _first(amounts, does)
        return None if found is None else (*base[:place], found, *base[place + 1 :])

    def _outcome(self, by: Raise) -> Hold | None:
        if by not in self._tried:
            change = self._change(by)
            self._tried[by] = self._case.hold if change is None else self._case.outcome(change)
        return self._tried[by]

    def _change(self, by: Raise) -> Change | None:
        """None where a limit has no place."""
        queues = dict(self._queues)
        change = self._case.change
        for limit, more in zip(self._limits, by, strict=True):
            figure = limit.figure
            if not more:
                continue
            changed = with_limit(queues[figure.queue], figure.key, (figure.limit or 0) + more)
            if changed is None:
                return None
            queues[figure.queue] = changed
            change = change.queue(changed)
        return change

    def found(self, by: Raise) -> Found | None:
        """The steps of a raise, the lowest queue first."""
        change = self._change(by)
        if change is None:
            return None
        own = self._case.target.queue
        steps = [
            _step(
                change.queues[limit.figure.queue],
                limit.figure,
                more,
                below="" if limit.figure.queue == own else own,
            )
            for limit, more in zip(self._limits, by, strict=True)
            if more
        ]
        return Found(tuple(steps), change, self._tried[by])


def _step(changed: Queue, now: Figure, more: int, below: str) -> Step:
    limit = written(now.key, (now.limit or 0) + more)
    more = limit - (now.limit or 0)
    told = f"{amount(now.key, now.limit or 0)} -> {amount(now.key, limit)}"
    who = f"queue {changed.name}{f' (above {below})' if below else ''}"
    return Step(
        "raise",
        f"raise the quota of {who} for {now.key} by {amount(now.key, more)} ({told})",
        object=f"Queue {changed.name}",
        key=now.key,
        amount=more,
        total=limit,
        command=command(changed.name, now.key, changed),
    )


def _first(amounts: Sequence[int], lifts: Callable[[int], bool]) -> int | None:
    """The least amount that lifts, looked for one by one; far ahead in strides, where the least one is not looked for."""
    for more in amounts[:_ONE_BY_ONE]:
        if lifts(more):
            return more
    rest = amounts[_ONE_BY_ONE:]
    if not rest or not lifts(rest[-1]):
        return None
    low, high = 0, len(rest) - 1
    while low < high:
        middle = (low + high) // 2
        if lifts(rest[middle]):
            high = middle
        else:
            low = middle + 1
    return rest[high]


def _sums(ledger: Ledger, entry: Entry, key: str, level: str) -> list[int]:
    """Whatever those up to a pod in line may take of a key together, from the least to the most.

    The least raise that lets it in leaves nothing over, so it is one of these. Of the limit of a queue above, `level`, those
    in other queues below it may take as well, whoever comes first.
    """
    others = [
        name for name in ledger.accounts if name != entry.queue and level in levels_of(ledger, name, key)
    ]
    line: list[Entry] = []
    for queue in [*others, entry.queue]:
        for unit in finish(units_of(ledger, queue)):
            line += unit.entries
            if any(one.pod.uid == entry.pod.uid for one in unit.entries):
                break
    parts = _parts(ledger, line, key, level)
    asks = [ask for ask in parts.values() if ask > 0]
    unit_of_all = gcd(*asks) if asks else 0
    if not unit_of_all:
        return []
    if sum(asks) // unit_of_all > _MOST_SUMS:
        return sorted({*_of_each(parts), sum(asks)})
    bits = 1
    for ask in asks:
        bits |= bits << (ask // unit_of_all)
    return [unit_of_all * place for place in _places(bits)]


def _parts(ledger: Ledger, line: Sequence[Entry], key: str, level: str) -> Counter[_Askers]:
    """What these pods ask of a key at a level, by who asks for it: of several pods the claims that just these share, which cost once."""
    parts: Counter[_Askers] = Counter()
    askers: dict[str, list[str]] = {}
    costs: dict[str, int] = {}
    for one in line:
        uid = one.pod.uid
        at_level = (figure for figure in limits_for(ledger, [one]) if figure.queue == level)
        parts[uid,] += sum(figure.asked for figure in at_level if figure.key == key)
        for claim, amounts in ledger.devices.to_ask(one.pod, one.queue, level).items():
            costs[claim] = thousandths(amounts).get(key, 0)
            askers.setdefault(claim, []).append(uid)
    for claim, uids in askers.items():
        if costs[claim] and len(uids) > 1:
            parts[tuple(uids)] += costs[claim]
            parts.subtract({(uid,): costs[claim] for uid in uids})
    return parts


def _of_each(parts: Mapping[_Askers, int]) -> Iterable[int]:
    """What each pod asks for by itself."""
    each: Counter[str] = Counter()
    for uids, ask in parts.items():
        each.update(dict.fromkeys(uids, ask))
    return each.values()


def _places(bits: int) -> Iterator[int]:
    text = bin(bits)[:1:-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)
