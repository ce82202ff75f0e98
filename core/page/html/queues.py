"""Queues with the bars of their quotas."""

from collections.abc import Iterator

from core.page.html.bars import bar
from core.page.html.links import pager
from core.page.html.marks import Markup, body, built, cell, joined, named, row, section, table, tag
from core.page.selection import QUEUES
from core.page.view import KeyRow, QueueRow, Queues, Wish
from core.quantity import QuantityError, milli
from core.steps import Steps

_DEEPEST = 6


def queues(found: Queues, wish: Wish) -> Steps[Markup]:
    """The part about queues."""
    if not found.rows:
        nothing = "No queue is called so." if wish.find else "There is no queue."
        return section("queues", "Queues", tag("p", nothing))
    below = "Cards and devices" if found.subtrees else "Devices"
    bodies = []
    for one in found.rows:
        bodies.append(body((yield from built(_rows(one)))))
        yield
    return section(
        "queues",
        "Queues",
        tag("p", f"{below} of a queue are those of all queues below it, too.", class_="note"),
        table(
            "Queues, what they may use and what is used",
            ("Queue", "Card or resource", "In use", "Waiting"),
            bodies,
            "queues",
        ),
        pager(wish, "queues", "queues", found.extent, len(found.rows), QUEUES),
    )


def _rows(queue: QueueRow) -> Iterator[Markup]:
    state = (tag("span", queue.state, class_="state"),) if queue.state != "Open" else ()
    parent = (tag("span", "below ", named(queue.parent), class_="unseen"),) if queue.depth else ()
    count = len(queue.keys) + bool(queue.more)
    first = tag(
        "th",
        named(queue.name),
        *(joined((" ", one)) for one in (*state, *parent)),
        scope="rowgroup",
        role="rowheader",
        rowspan=max(count, 1),
        class_=f"depth{min(queue.depth, _DEEPEST)}",
    )
    if not queue.keys:
        yield row(first, cell("No quota, and nothing in use", colspan=3, class_="note"))
    for number, one in enumerate(queue.keys):
        cells = (
            cell(named(one.key), label="Card"),
            cell(*_use(one), label="In use"),
            cell(one.waiting, label="Waiting", class_="number"),
        )
        yield row(*((first,) if not number else ()), *cells)
    if queue.more:
        yield row(cell(f"and {queue.more:,} more, which have no quota here", colspan=3, class_="note"))


def _use(one: KeyRow) -> Iterator[Markup]:
    used, reserved, quota = (_amount(text) for text in (one.allocated, one.reserved, one.quota or "0"))
    if one.quota:
        yield bar(quota, used, reserved)
    told = f"{one.allocated} of {one.quota}" if one.quota else f"{one.allocated}, no quota"
    held = f", {one.reserved} reserved" if reserved else ""
    over = ": more than the quota" if one.quota and used + reserved > quota else ""
    yield tag("span", f"{told}{held}{over}", class_="told")


def _amount(text: str) -> int:
    """Thousandths; nothing for a text that is no amount, which only another server than ours would send."""
    try:
        return milli(text)
    except QuantityError:
        return 0
