"""The quota that would let in given pods of a queue, those before them in line served first as ever."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from core.answers.quota import command, with_limit, written
from core.answers.shortage import Figure, figures_for, levels_of, limits_for
from core.answers.whatif import Change, SpentError, WhatIf
from core.objects import Queue, queue
from core.plan.decision import Hold
from core.queues.ledger import Ledger

_WHOLE: Final = 1000
_SWEEPS: Final = 3

Limits = Mapping[tuple[str, str], int]
"""By queue and key, in thousandths."""


@dataclass(frozen=True, slots=True)
class Need:
    """One key of the quota of a queue, in thousandths; `now` is None where there is no such limit, nor a queue."""

    queue: str
    key: str
    now: int | None
    needed: int
    command: str
    """What sets it, together with every other card; empty where no single command does."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What quota would do. With `changed` in place all of the pods are let in, but for those in `holds`."""

    changed: Mapping[str, Queue]
    """The queue as it would be, and those above it whose limits hold as well; none that is enough as it is."""
    needs: tuple[Need, ...]
    """Those of the queue itself first."""
    holds: Mapping[str, Hold]
    """Why pods would wait all the same, by UID: no quota helps them."""
    least: bool
    """Whether no less of any of the keys would do, the others being so; else the search was given up, with enough found."""

    @property
    def change(self) -> Change:
        """The cluster with it."""
        return _changed(self.changed)


def fit(ledger: Ledger, name: str, uids: Collection[str]) -> Fit:
    """The least quota for these waiting pods, which charge the queue `name`. The books are as they were afterwards."""
    whatif = WhatIf(ledger)
    held = _of(whatif.holds(Change.none()), uids)
    if not held:
        return Fit({}, (), {}, least=True)
    there = ledger.queues.get(name)
    base = there or queue.project({"metadata": {"name": name}, "status": {"state": "Open"}})
    with whatif.made(Change.none() if there else Change.none().queue(base)):
        # Of all that are meant: whoever would be let in now may have to take another card beside those that wait.
        figures = _asked_of(ledger, name, uids)
        queues = {one.queue: ledger.queues[one.queue] for one in figures if one.queue in ledger.queues}
        ample = {_place(one): one.used + _waiting_for(ledger, one) for one in figures}
    limits = {_place(one): max(ample[_place(one)], one.limit or 0) for one in figures}
    new = {} if there else {name: base}
    most = _changed({**new, **_with(queues, limits)})
    still = _of(whatif.holds(most), uids)
    if still.keys() >= held.keys():
        return Fit({}, (), {uid: still[uid] for uid in held}, least=True)
    wanted = frozenset(uids) - still.keys()

    def enough(limits: Limits) -> bool:
        return not _of(whatif.holds(_changed({**new, **_with(queues, limits)})), wanted)

    found, least = _least(figures, limits, enough)
    now = {_place(one): one.limit if one.queue != name or there is not None else None for one in figures}
    raised = {at: milli for at, milli in found.items() if now[at] is None or milli > (now[at] or 0)}
    changed = _with(queues, raised)
    needs = [
        Need(at, key, now[at, key], written(key, milli), command(at, key, changed[at]))
        for (at, key), milli in sorted(raised.items(), key=lambda one: (one[0][0] != name, one[0]))
        if at in changed
    ]
    return Fit(changed, tuple(needs), still, least)


def _place(figure: Figure) -> tuple[str, str]:
    return figure.queue, figure.key


def _changed(queues: Mapping[str, Queue]) -> Change:
    return reduce(Change.queue, queues.values(), Change.none())


def _of(holds: Mapping[str, Hold], uids: Collection[str]) -> dict[str, Hold]:
    return {uid: hold for uid, hold in holds.items() if uid in uids}


def _with(queues: Mapping[str, Queue], limits: Limits) -> dict[str, Queue]:
    """Those of the queues that get other limits."""
    changed: dict[str, Queue] = {}
    for (name, key), milli in limits.items():
        base = changed.get(name) or queues.get(name)
        raised = with_limit(base, key, milli) if base is not None else None
        if raised is not None:
            changed[name] = raised
    return changed


def _asked_of(ledger: Ledger, name: str, uids: Collection[str]) -> list[Figure]:
    """Every limit that holds for any of these pods of the queue; `asked` is the largest ask of one. Those of the queue first."""
    found: dict[tuple[str, str], Figure] = {}
    for uid in uids:
        entry = ledger.entry(uid)
        for figure in limits_for(ledger, [entry]) if entry is not None and entry.queue == name else ():
            known = found.get(_place(figure))
            if known is None or known.asked < figure.asked:
                found[_place(figure)] = figure
    return [found[place] for place in sorted(found, key=lambda one: (one[0] != name, one))]


def _waiting_for(ledger: Ledger, limit: Figure) -> int:
    """What waits for a limit: in its queue, and in those below for which it holds as well."""
    return sum(
        figure.asked
        for queue in ledger.accounts
        if limit.queue in levels_of(ledger, queue, limit.key)
        for entry in ledger.waiting(queue)
        for figure in figures_for(ledger, [entry])
        if figure.key == limit.key
    )


def _least(
    figures: Sequence[Figure], limits: Limits, enough: Callable[[Limits], bool]
) -> tuple[Limits, bool]:
    """The limits with as little of each as will do; and whether that was looked for to the end."""
    try:
        for _ in range(_SWEEPS if len(figures) > 1 else 1):
            before = limits
            for figure in figures:
                limits = _lowered(figure, limits, enough)
            if limits == before:
                break
    except SpentError:
        return limits, False
    return limits, True


def _lowered(figure: Figure, limits: Limits, enough: Callable[[Limits], bool]) -> Limits:
    """The limits with as little of one as will do; never less than there is."""
    place = _place(figure)
    unit = _WHOLE if limits[place] % _WHOLE == 0 and (figure.limit or 0) % _WHOLE == 0 else 1
    low, high = (figure.limit or 0) // unit, limits[place] // unit
    while low < high:
        middle = (low + high) // 2
        if enough({**limits, place: middle * unit}):
            high = middle
        else:
            low = middle + 1
    return {**limits, place: high * unit}
