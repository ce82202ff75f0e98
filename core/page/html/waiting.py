"""The pods that wait, in line."""

from core.page.html.links import pager
from core.page.html.marks import (
    Markup,
    age,
    body,
    built,
    cell,
    counted,
    head,
    named,
    row,
    section,
    table,
    tag,
)
from core.page.selection import WAITING
from core.page.view import Waiting, WaitingRow, Wish
from core.steps import Steps


def waiting(found: Waiting, wish: Wish, taken: int) -> Steps[Markup]:
    """The part about pods that wait; `taken` is when it was so."""
    where = f" in namespace {found.namespace}" if found.namespace else ""
    if not found.rows:
        nothing = f"No such pod waits{where}." if wish.find else f"No pod waits{where}."
        return section("waiting", "Waiting pods", tag("p", nothing))
    rows = yield from built(_row(one, taken) for one in found.rows)
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


def _row(one: WaitingRow, taken: int) -> Markup:
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
