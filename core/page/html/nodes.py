"""Nodes, and how full their cards are."""

from collections.abc import Iterator

from core.page.html.bars import bar
from core.page.html.links import pager
from core.page.html.marks import Markup, body, built, cell, named, row, section, table, tag
from core.page.selection import NODES
from core.page.view import NodeRow, Nodes, Wish
from core.steps import Steps


def nodes(found: Nodes, wish: Wish) -> Steps[Markup]:
    """The part about nodes."""
    if not found.rows:
        nothing = "No node with cards is called so." if wish.find else "There is no node with cards."
        return section("nodes", "Nodes", tag("p", nothing))
    bodies = []
    for one in found.rows:
        bodies.append(body((yield from built(_rows(one)))))
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


def _rows(node: NodeRow) -> Iterator[Markup]:
    uses = list(_uses(node))
    first = tag("th", named(node.name), scope="rowgroup", role="rowheader", rowspan=max(1, len(uses)))
    for number, (card, use) in enumerate(uses):
        cells = (cell(named(card), label="Card"), cell(*use, label="In use"))
        yield row(*((first,) if not number else ()), *cells)
    if not uses:
        yield row(first, cell("none", colspan=2))


def _uses(node: NodeRow) -> Iterator[tuple[str, tuple[Markup, ...]]]:
    for card in node.cards:
        over = ": more than the node has" if card.used > card.count else ""
        told = tag("span", f"{card.used} of {card.count}{over}", class_="told")
        yield card.card, (bar(card.count, card.used), told)
    for share in node.shares:
        words = f"{share.used} of {share.core} hundredths, {share.held} of {share.memory} MiB"
        bars = tag("span", bar(share.core, share.used), bar(share.memory, share.held), class_="pair")
        yield f"mGPU {share.index}", (bars, tag("span", words, class_="told"))
