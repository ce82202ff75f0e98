"""Out of a board the page of one reader: what it may see of what it asked for, with the figures of now."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from core.answers.words import amounts
from core.display.figures import Figures, figures_of
from core.display.fill import fill_of
from core.mgpu.pieces import in_steps
from core.page.board import Board, Waits
from core.page.view import (
    CardRow,
    Change,
    Changes,
    Extent,
    KeyRow,
    NodeRow,
    Nodes,
    QueueRow,
    Queues,
    QuotaChange,
    ShareRow,
    View,
    Waiting,
    WaitingRow,
    Wish,
)
from core.page.witness import HOUR_US, Gone, Recent, Requota
from core.quantity import render_milli
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

QUEUES: Final = 25
WAITING: Final = 50
NODES: Final = 20
QUOTAS: Final = 20
"""Rows of a page."""
KEYS: Final = 20
"""Cards and resources of one queue; pods may wait for any name."""
SHARES: Final = 16
"""mGPU cards of one node."""
_NAME: Final = 253
_TEXT: Final = 600
_SCANNED: Final = 500
_SECOND: Final = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sight:
    """What a reader may see. `pods` is the namespace whose pods, empty for those of all, None for none."""

    queues: bool = True
    pods: str | None = ""
    nodes: bool = True
    hours: bool = True


EVERYTHING: Final = Sight()


def view_of(board: Board, ledger: Ledger, wish: Wish, sight: Sight, source: str) -> Steps[View]:
    """The page; `source` is whom it is from."""
    namespace = sight.pods or wish.namespace
    queues = (yield from _queues(board, ledger, wish)) if sight.queues else None
    waiting = (yield from _waiting(board, wish, sight, namespace)) if sight.pods is not None else None
    nodes = (yield from _nodes(board, ledger, wish)) if sight.nodes else None
    return View(
        taken=board.taken // _SECOND,
        source=source,
        wish=wish,
        queues=queues,
        waiting=waiting,
        nodes=nodes,
        changes=_changes(board, ledger, sight, namespace) if sight.pods is not None else None,
        hours=board.hours if sight.hours else None,
        notes=tuple(_notes(board, sight)),
    )


def _notes(board: Board, sight: Sight) -> list[str]:
    notes = []
    if not sight.queues:
        notes.append("Queues and places in line are left out: that takes the right to list queues.")
    if sight.pods is None:
        notes.append(
            "Pods are left out: that takes the right to list pods, here or in the namespace that is named."
        )
    elif sight.pods:
        notes.append(f"Of pods those of namespace {sight.pods} are shown: you may not list those of all.")
    if not sight.nodes:
        notes.append("Nodes are left out: that takes the right to list nodes.")
    if not sight.hours:
        notes.append("Card-hours are left out: that takes the right to get the ConfigMap cardquota-usage.")
    elif board.hours is None:
        notes.append("Card-hours are not known: nobody has written any down.")
    return notes


def _queues(board: Board, ledger: Ledger, wish: Wish) -> Steps[Queues]:
    matching = yield from _found(board.queues, lambda one: one[0], wish.find)
    first, shown = _page(matching, wish.queues, QUEUES)
    rows = []
    for name, depth in shown:
        yield
        queue = ledger.queues.get(name)
        state = (queue.state or "Open") if queue is not None else "NotFound"
        keys, more = _keys(figures_of(ledger, name))
        parent = queue.parent if queue is not None else ""
        rows.append(QueueRow(_cut(name), state, depth, _cut(parent), keys, more))
    return Queues(tuple(rows), Extent(first, len(matching)), ledger.subtrees is not None)


def _keys(figures: Figures) -> tuple[tuple[KeyRow, ...], int]:
    """Those that have a quota first, then those of which most is in use or waited for.

    Of too many with a quota those are shown that are furthest beyond it, then those of which most is in use or waited for.
    """
    sums = (figures.allocated, figures.reserved, figures.waiting)
    keys = {key for amounts in (figures.quota, *sums) for key in amounts}
    keys = {key for key in keys if key in figures.quota or any(part.get(key) for part in sums)}

    def weight(key: str) -> int:
        return sum(part.get(key, 0) for part in sums)

    def place(key: str) -> tuple[bool, int, str]:
        return key not in figures.quota, 0 if key in figures.quota else -weight(key), key

    def rank(key: str) -> tuple[bool, int, int, str]:
        used = sum(part.get(key, 0) for part in sums[:2])
        beyond = max(0, used - figures.quota.get(key, used))
        return key not in figures.quota, -beyond, -weight(key), key

    shown = sorted(sorted(keys, key=rank)[:KEYS], key=place)
    rows = tuple(
        KeyRow(
            _cut(key),
            render_milli(figures.quota[key]) if key in figures.quota else "",
            *(render_milli(part.get(key, 0)) for part in sums),
        )
        for key in shown
    )
    return rows, len(keys) - len(shown)


def _waiting(board: Board, wish: Wish, sight: Sight, namespace: str) -> Steps[Waiting]:
    found: Sequence[Waits] = board.waiting
    if namespace:
        found = yield from _filtered(found, lambda one: one.entry.pod.namespace == namespace)
    matching = yield from _found(found, _words, wish.find)
    first, shown = _page(matching, wish.waiting, WAITING)
    yield
    rows = tuple(_waits(one, sight) for one in shown)
    return Waiting(rows, Extent(first, len(matching)), namespace)


def _words(one: Waits) -> str:
    return f"{one.entry.pod.key} {one.entry.queue} {one.hold.why.code if one.hold is not None else ''}"


def _waits(one: Waits, sight: Sight) -> WaitingRow:
    entry, hold = one.entry, one.hold
    return WaitingRow(
        pod=entry.pod.key,
        queue=_cut(entry.queue),
        number=one.number if sight.queues else 0,
        line=one.line if sight.queues else 0,
        together=one.together,
        asks=_cut(amounts(dict(entry.charged))),
        since=entry.pod.created // _SECOND,
        reason=hold.why.code if hold is not None else "",
        message=_cut(hold.why.message, _TEXT) if hold is not None else "",
    )


def _changes(board: Board, ledger: Ledger, sight: Sight, namespace: str) -> Changes:
    found = board.recent.get(namespace, Recent())
    latest = sorted(found.latest, reverse=True)
    counts = found.counts
    return Changes(
        (board.taken - HOUR_US) // _SECOND,
        counts["came"],
        counts["started"],
        counts["ended"],
        tuple(
            Change(
                at // _SECOND,
                what,
                key,
                _cut(pod.queue if isinstance(pod, Gone) else ledger.attribution(pod).queue),
            )
            for at, what, key, _, pod in latest
        ),
        namespace,
        counts["gone"],
        -(-board.known // _SECOND),
        tuple(map(_requota, reversed(board.quotas[-QUOTAS:]))) if sight.queues else (),
    )


def _requota(one: Requota) -> QuotaChange:
    def amount(milli: int | None) -> str:
        return "none" if milli is None else render_milli(milli)

    told = [f"{_cut(key)}: {amount(before)} to {amount(after)}" for key, before, after in one.keys[:KEYS]]
    more = [f"{len(one.keys) - KEYS} more"] if len(one.keys) > KEYS else []
    return QuotaChange(one.at // _SECOND, _cut(one.queue), _cut(", ".join(told + more), _TEXT))


def _nodes(board: Board, ledger: Ledger, wish: Wish) -> Steps[Nodes]:
    matching = yield from _found(board.nodes, str, wish.find)
    first, shown = _page(matching, wish.nodes, NODES)
    rows = []
    for name in shown:
        yield
        row = yield from in_steps(partial(_node_row, ledger, name))
        if row is not None:
            rows.append(row)
    return Nodes(tuple(rows), Extent(first, len(matching)))


def _node_row(ledger: Ledger, name: str) -> NodeRow | None:
    return _node(name, fill_of(ledger, name)) if name in ledger.nodes else None


def _node(name: str, fill: dict[str, Any]) -> NodeRow:
    cards = [CardRow(_cut(card), one["used"], one["count"]) for card, one in fill["cards"].items()]
    shares = [
        ShareRow(one["index"], one["coreUsed"], one["core"], one["memoryUsed"], one["memory"])
        for one in fill["mgpu"]
    ]
    more = len(cards[KEYS:]) + len(shares[SHARES:])
    return NodeRow(name, tuple(cards[:KEYS]), tuple(shares[:SHARES]), more)


def _filtered(things: Sequence[T], chosen: Callable[[T], bool]) -> Steps[Sequence[T]]:
    """Those that are chosen; gone through with pauses."""
    found: list[T] = []
    pace = Pace(_SCANNED)
    for thing in things:
        if pace.due():
            yield
        if chosen(thing):
            found.append(thing)
    return found


def _found(things: Sequence[T], words: Callable[[T], str], find: str) -> Steps[Sequence[T]]:
    """Those in whose words the text is, whatever the case of its letters; all for an empty one."""
    wanted = find.strip().lower()
    if not wanted:
        return things
    return (yield from _filtered(things, lambda thing: wanted in words(thing).lower()))


def _page(things: Sequence[T], number: int, size: int) -> tuple[int, Sequence[T]]:
    """Where a page begins, and its rows; the last page for a number that is too large."""
    pages = max(1, -(-len(things) // size))
    first = (min(max(number, 1), pages) - 1) * size
    return first, things[first : first + size]


def _cut(text: str, most: int = _NAME) -> str:
    """What fits a cell: names in annotations are as long as their writers like."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
