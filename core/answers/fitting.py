"""The quota that would let in given pods of a queue, those before them in line served first as ever."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from core.answers.quota import command, with_limit
from core.answers.shortage import Figure, figures_for
from core.answers.whatif import Change, SpentError, WhatIf
from core.objects import Queue, queue
from core.plan.decision import Hold
from core.queues.ledger import Ledger

_WHOLE: Final = 1000


@dataclass(frozen=True, slots=True)
class Need:
    """One key of the quota, in thousandths; `now` is None where there is no such limit, nor a queue."""

    key: str
    now: int | None
    needed: int
    command: str
    """What sets it, together with every other card; empty where no single command does."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What quota would do. With `changed` in place all of the pods are let in, but for those in `holds`."""

    changed: Queue | None
    """The queue as it would be; None where it is enough as it is."""
    needs: tuple[Need, ...]
    holds: Mapping[str, Hold]
    """Why pods would wait all the same, by UID: no quota of this queue helps them."""
    least: bool
    """Whether no less of any of the keys would do, the others being so; else the search was given up, with enough found."""

    @property
    def change(self) -> Change:
        """The cluster with it."""
        return Change.none() if self.changed is None else Change.none().queue(self.changed)


def fit(ledger: Ledger, name: str, uids: Collection[str]) -> Fit:
    """The least quota for these waiting pods, which charge the queue `name`. The books are as they were afterwards."""
    whatif = WhatIf(ledger)
    held = _of(whatif.holds(Change.none()), uids)
    if not held:
        return Fit(None, (), {}, least=True)
    there = ledger.queues.get(name)
    base = there or queue.project({"metadata": {"name": name}, "status": {"state": "Open"}})
    with whatif.made(Change.none() if there else Change.none().queue(base)):
        figures = _asked_of(ledger, name, held)
        ample = {figure.key: figure.used + _waiting_for(ledger, name, figure.key) for figure in figures}
    limits = {figure.key: max(ample[figure.key], figure.limit or 0) for figure in figures}
    most = _with(base, limits)
    still = _of(whatif.holds(Change.none().queue(most)), uids)
    if len(still) == len(held):
        return Fit(None, (), still, least=True)
    wanted = frozenset(uids) - still.keys()

    def enough(limits: Mapping[str, int]) -> bool:
        return not _of(whatif.holds(Change.none().queue(_with(base, limits))), wanted)

    least = True
    try:
        for figure in figures:
            limits = _lowered(figure, limits, enough)
    except SpentError:
        least = False
    raised = {
        one.key: limits[one.key] for one in figures if there is None or limits[one.key] > (one.limit or 0)
    }
    changed = _with(base, raised)
    now = {figure.key: figure.limit if there is not None else None for figure in figures}
    needs = [Need(key, now[key], milli, command(name, key, changed)) for key, milli in sorted(raised.items())]
    return Fit(changed, tuple(needs), still, least)


def _of(holds: Mapping[str, Hold], uids: Collection[str]) -> dict[str, Hold]:
    return {uid: hold for uid, hold in holds.items() if uid in uids}


def _with(base: Queue, limits: Mapping[str, int]) -> Queue:
    changed = base
    for key, milli in limits.items():
        changed = with_limit(changed, key, milli) or changed
    return changed


def _asked_of(ledger: Ledger, name: str, uids: Collection[str]) -> list[Figure]:
    """The limited keys that any of these pods asks for in the queue; `asked` is the largest ask of one."""
    found: dict[str, Figure] = {}
    for uid in uids:
        entry = ledger.entry(uid)
        for figure in figures_for(ledger, [entry]) if entry is not None and entry.queue == name else ():
            known = found.get(figure.key)
            if figure.limit is not None and (known is None or known.asked < figure.asked):
                found[figure.key] = figure
    return [found[key] for key in sorted(found)]


def _waiting_for(ledger: Ledger, name: str, key: str) -> int:
    return sum(
        figure.asked
        for entry in ledger.waiting(name)
        for figure in figures_for(ledger, [entry])
        if figure.key == key
    )


def _lowered(
    figure: Figure, limits: Mapping[str, int], enough: Callable[[Mapping[str, int]], bool]
) -> dict[str, int]:
    """The limits with as little of one key as will do; never less than there is."""
    found = dict(limits)
    unit = _WHOLE if found[figure.key] % _WHOLE == 0 and (figure.limit or 0) % _WHOLE == 0 else 1
    low, high = (figure.limit or 0) // unit, found[figure.key] // unit
    while low < high:
        middle = (low + high) // 2
        if enough(found | {figure.key: middle * unit}):
            high = middle
        else:
            low = middle + 1
    return found | {figure.key: high * unit}
