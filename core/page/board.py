"""One look at the books, for all who read the page in the next seconds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.display.fill import has_cards
from core.names import ROOT_QUEUE
from core.objects import Pod
from core.page.hours import Summed, hours
from core.page.view import Hours
from core.page.witness import Recent, Requota, Witness, recent
from core.plan.decision import Hold
from core.plan.units import units_of
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

_STEP = 100


@dataclass(frozen=True, slots=True)
class Waits:
    """A pod that waits, where it stands in line, and what the last pass said of it; None before one has come to it."""

    entry: Entry
    number: int
    line: int
    together: int
    hold: Hold | None


@dataclass(frozen=True, slots=True)
class Board:
    """What there is, without figures: those of what a page shows are read when it is made. `taken` in microseconds since 1970."""

    taken: int
    queues: tuple[tuple[str, int], ...]
    """Names and depths, each queue behind its parent."""
    waiting: tuple[Waits, ...]
    nodes: tuple[str, ...]
    """Those with cards."""
    recent: Mapping[str, Recent]
    """By namespace, and under no name of all."""
    known: int
    """Since when pods that are gone are known, and quotas as they were; 0 where nobody has looked."""
    quotas: tuple[Requota, ...]
    hours: Hours | None


def board(
    ledger: Ledger,
    pods: Iterable[Pod],
    holds: Mapping[str, Hold],
    summed: Summed | None,
    now: int,
    witness: Witness | None = None,
) -> Steps[Board]:
    """The board as of `now`, in microseconds since 1970. `holds` is what the last passes said, by UID.

    `pods` are all, those that have ended included. Meanwhile the books may change: each part is as it was when it was come to.
    """
    queues = yield from _queues(ledger)
    waiting = yield from _waiting(ledger, holds)
    nodes = yield from _nodes(ledger)
    gone, quotas = (
        (witness.pods.of_hour(now), witness.quotas.of_hour(now)) if witness is not None else ((), ())
    )
    known = max(witness.pods.since, witness.quotas.since) if witness is not None else 0
    changes = yield from recent(tuple(pods), now, gone)
    by_day = None if summed is None else (yield from hours(summed, now))
    return Board(now, queues, waiting, nodes, changes, known, quotas, by_day)


def _queues(ledger: Ledger) -> Steps[tuple[tuple[str, int], ...]]:
    """All queues that exist or are charged, as a tree: by name, each behind its parent. One whose chain is broken is at the root."""
    names = sorted({*ledger.queues, *ledger.accounts})
    children: dict[str, list[str]] = {}
    pace = Pace(_STEP)
    for name in names:
        if pace.due():
            yield
        chain = ledger.tree.chain(name)
        parent = ROOT_QUEUE if chain.problem or name == ROOT_QUEUE else chain.queues[1]
        children.setdefault("" if name == ROOT_QUEUE or parent not in ledger.queues else parent, []).append(
            name
        )
    found: list[tuple[str, int]] = []
    left = [(name, 0) for name in reversed(children.get("", ()))]
    while left:
        if pace.due():
            yield
        name, depth = left.pop()
        found.append((name, depth))
        left += [(child, depth + 1) for child in reversed(children.get(name, ()))]
    return tuple(found)


def _waiting(ledger: Ledger, holds: Mapping[str, Hold]) -> Steps[tuple[Waits, ...]]:
    """Everybody who waits, by queue and place in line."""
    found: list[Waits] = []
    pace = Pace(_STEP)
    for queue in sorted(ledger.accounts):
        units = yield from units_of(ledger, queue)
        for number, unit in enumerate(units, 1):
            if pace.due(len(unit.entries)):
                yield
            together = len(unit.entries)
            found += [
                Waits(entry, number, len(units), together, holds.get(entry.pod.uid)) for entry in unit.entries
            ]
    return tuple(found)


def _nodes(ledger: Ledger) -> Steps[tuple[str, ...]]:
    found = []
    pace = Pace(_STEP)
    for name in sorted(ledger.nodes):
        if pace.due():
            yield
        if name in ledger.nodes and has_cards(ledger, name):
            found.append(name)
    return tuple(found)
