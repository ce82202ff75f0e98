"""The sections of the page, each about one thing, most of them tables.

What bars show always stands beside them in words, so readers of a screen are not told twice.
"""

from collections.abc import Iterator
from typing import Final

from core.page.html.links import pager
from core.page.html.marks import (
    Markup,
    age,
    body,
    built,
    cell,
    counted,
    head,
    joined,
    moment,
    named,
    row,
    section,
    table,
    tag,
)
from core.page.selection import NODES, QUEUES, WAITING
from core.page.view import (
    Change,
    Changes,
    Hours,
    HoursRow,
    KeyRow,
    NodeRow,
    Nodes,
    QueueRow,
    Queues,
    QuotaChange,
    Waiting,
    WaitingRow,
    Wish,
)
from core.quantity import QuantityError, milli
from core.steps import Steps

_WIDTH = 100
_DEEPEST = 6
_CHANGES: Final = {"came": "came", "started": "got its node", "ended": "ended", "gone": "was deleted"}


def bar(whole: float, used: float, reserved: float = 0) -> Markup:
    """How much of something is used, and how much more is reserved; anything at all is seen, and beyond it all is one colour."""
    track = tag("rect", class_="track", width=_WIDTH, height=10)
    if used + reserved > whole:
        parts = [tag("rect", class_="over", width=_WIDTH, height=10)]
    else:
        first, both = _part(used, whole), _part(used + reserved, whole)
        parts = [tag("rect", class_="used", width=first, height=10)]
        if reserved:
            parts.append(tag("rect", class_="reserved", x=first, width=max(1, both - first), height=10))
    return tag(
        "svg",
        track,
        *parts,
        class_="bar",
        viewBox=f"0 0 {_WIDTH} 10",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def _part(amount: float, whole: float) -> int:
    return max(1 if amount else 0, int(amount * _WIDTH / whole)) if whole else 0


def queues(found: Queues, wish: Wish) -> Steps[Markup]:
    """The part about queues."""
    if not found.rows:
        nothing = "No queue is called so." if wish.find else "There is no queue."
        return section("queues", "Queues", tag("p", nothing))
    below = "Cards and devices" if found.subtrees else "Devices"
    bodies = []
    for one in found.rows:
        bodies.append(body((yield from built(_queue_rows(one)))))
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


def _queue_rows(queue: QueueRow) -> Iterator[Markup]:
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
            cell(*_queue_use(one), label="In use"),
            cell(one.waiting, label="Waiting", class_="number"),
        )
        yield row(*((first,) if not number else ()), *cells)
    if queue.more:
        quota = "" if all(one.quota for one in queue.keys) else ", which have no quota here"
        told = f"and {queue.more:,} more{quota}; cardquota queues has them all"
        yield row(cell(told, colspan=3, class_="note"))


def _queue_use(one: KeyRow) -> Iterator[Markup]:
    used, reserved, quota = (_thousandths(text) for text in (one.allocated, one.reserved, one.quota or "0"))
    if one.quota:
        yield bar(quota, used, reserved)
    told = f"{one.allocated} of {one.quota}" if one.quota else f"{one.allocated}, no quota"
    held = f", {one.reserved} reserved" if reserved else ""
    over = ": more than the quota" if one.quota and used + reserved > quota else ""
    yield tag("span", f"{told}{held}{over}", class_="told")


def _thousandths(text: str) -> int:
    """Thousandths; nothing for a text that is no amount, which only another server than ours would send."""
    try:
        return milli(text)
    except QuantityError:
        return 0


def waiting(found: Waiting, wish: Wish, taken: int) -> Steps[Markup]:
    """The part about pods that wait; `taken` is when it was so."""
    where = f" in namespace {found.namespace}" if found.namespace else ""
    if not found.rows:
        nothing = f"No such pod waits{where}." if wish.find else f"No pod waits{where}."
        return section("waiting", "Waiting pods", tag("p", nothing))
    rows = yield from built(_waiting_row(one, taken) for one in found.rows)
    return section(
        "waiting",
        "Waiting pods",
        tag("p", f"{counted(found.extent.of, 'pod')}{where}, by queue and place in line.", class_="note"),
        table(
            "Pods that wait for quota",
            ("Pod", "Queue", "Place", "Asks for", "Since", "Why"),
            [body(rows)],
            "waiting",
        ),
        pager(wish, "waiting", "waiting pods", found.extent, len(found.rows), WAITING),
    )


def _waiting_row(one: WaitingRow, taken: int) -> Markup:
    return row(
        head(one.pod),
        cell(named(one.queue), label="Queue", class_="short"),
        cell(_place(one), label="Place", class_="number"),
        cell(named(one.asks), label="Asks for", class_="asks"),
        cell(age(taken - one.since) if one.since else "", label="Since", class_="number"),
        cell(*_why(one), label="Why", class_="why"),
    )


def _place(one: WaitingRow) -> str:
    if not one.number:
        return "not shown"
    others = f", {one.together} together" if one.together > 1 else ""
    return f"{one.number:,} of {one.line:,}{others}"


def _why(one: WaitingRow) -> tuple[Markup, ...]:
    if not one.reason:
        return (tag("span", "no reason is known yet"),)
    return (tag("strong", one.reason), tag("p", named(one.message)))


def nodes(found: Nodes, wish: Wish) -> Steps[Markup]:
    """The part about nodes."""
    if not found.rows:
        nothing = "No node with cards is called so." if wish.find else "There is no node with cards."
        return section("nodes", "Nodes", tag("p", nothing))
    bodies = []
    for one in found.rows:
        bodies.append(body((yield from built(_node_rows(one)))))
        yield
    return section(
        "nodes",
        "Nodes",
        table(
            "Nodes with cards, and how full these are",
            ("Node", "Card", "In use"),
            bodies,
            "nodes",
        ),
        pager(wish, "nodes", "nodes", found.extent, len(found.rows), NODES),
    )


def _node_rows(node: NodeRow) -> Iterator[Markup]:
    uses = list(_node_uses(node))
    first = tag("th", named(node.name), scope="rowgroup", role="rowheader", rowspan=max(1, len(uses)))
    for number, (card, use) in enumerate(uses):
        cells = (cell(named(card), label="Card"), cell(*use, label="In use"))
        yield row(*((first,) if not number else ()), *cells)
    if not uses:
        yield row(first, cell("none", colspan=2))
    if node.more:
        yield row(cell(f"and {node.more:,} more; cardquota gpus has them all", colspan=3, class_="note"))


def _node_uses(node: NodeRow) -> Iterator[tuple[str, tuple[Markup, ...]]]:
    for card in node.cards:
        over = ": more than the node has" if card.used > card.count else ""
        told = tag("span", f"{card.used} of {card.count}{over}", class_="told")
        yield card.card, (bar(card.count, card.used), told)
    for share in node.shares:
        words = f"{share.used} of {share.core} hundredths, {share.held} of {share.memory} MiB"
        bars = tag("span", bar(share.core, share.used), bar(share.memory, share.held), class_="pair")
        yield f"mGPU {share.index}", (bars, tag("span", words, class_="told"))


def changes(found: Changes) -> Steps[Markup]:
    """The part about the last hour."""
    where = f" of namespace {found.namespace}" if found.namespace else ""
    parts = list[Markup]()
    if found.latest:
        told = (
            f"{counted(found.came, 'pod')}{where} came, {found.started:,} got a node, {found.ended:,} ended"
        )
        told += f", {found.gone:,} {'was' if found.gone == 1 else 'were'} deleted." if found.known else "."
        rows = yield from built(_change_row(one) for one in found.latest)
        parts.append(tag("p", told, class_="note"))
        parts.append(table("The latest changes", ("Pod", "What", "Queue", "When"), [body(rows)]))
    if found.quotas:
        rows = yield from built(_quota_row(one) for one in found.quotas)
        parts.append(tag("p", "Changed quotas, the latest first.", class_="note"))
        parts.append(table("The latest quotas", ("Queue", "Quota", "When"), [body(rows)]))
    if not parts:
        parts.append(tag("p", f"Nothing has changed{where}."))
    if not found.known:
        parts.append(tag("p", "Deleted pods and changed quotas are not known here.", class_="note"))
    elif found.known > found.since:
        known = "Deleted pods and changed quotas are known since "
        parts.append(tag("p", known, moment(found.known), ".", class_="note"))
    return section("changes", "The last hour", *parts)


def _quota_row(one: QuotaChange) -> Markup:
    return row(
        head(one.queue), cell(one.what, label="Quota"), cell(moment(one.at), label="When", class_="number")
    )


def _change_row(one: Change) -> Markup:
    return row(
        head(one.pod),
        cell(_CHANGES.get(one.what, one.what), label="What"),
        cell(named(one.queue), label="Queue"),
        cell(moment(one.at), label="When", class_="number"),
    )


def hours(found: Hours) -> Steps[Markup]:
    """The part about card-hours; a bar is of the largest day in its row."""
    if not found.rows:
        return section("hours", "Card-hours", tag("p", "Nothing was used in the last days."))
    more = f" Not shown are {found.more:,} rows of which less was used." if found.more else ""
    rows = yield from built(_hours_row(one, found.days) for one in found.rows)
    return section(
        "hours",
        "Card-hours",
        tag("p", "By day (UTC), up to ", moment(found.through), f".{more}", class_="note"),
        tag(
            "div",
            table(
                "Card-hours by queue, card and day",
                ("Queue", "Card", *found.days, "Used", "Of the quota", "Waited"),
                [body(rows)],
                "hours",
            ),
            class_="scroll",
            role="region",
            tabindex=0,
            aria_label="Card-hours by day",
        ),
    )


def _hours_row(one: HoursRow, days: tuple[str, ...]) -> Markup:
    most = max(one.days, default=0.0)
    quota = f"{one.used / one.quota:.0%}" if one.quota else "no quota"
    return row(
        head(one.queue),
        cell(named(one.card), label="Card", class_="asks"),
        *(
            cell(tag("span", f"{used:,.1f}"), bar(most, used), label=day, class_="day")
            for day, used in zip(days, one.days, strict=False)
        ),
        cell(f"{one.used:,.1f}", label="Used", class_="number"),
        cell(quota, label="Of the quota", class_="number"),
        cell(f"{one.waited:,.1f}", label="Waited", class_="number"),
    )
