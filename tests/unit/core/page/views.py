"""Views to be written as HTML, and what is read back from that."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from core.page.html.document import document
from core.page.view import (
    CardRow,
    Change,
    Changes,
    Extent,
    Hours,
    HoursRow,
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
from core.steps import finish

NOON = 1_800_000_000
VOID = {"meta", "input", "br", "link"}


def filled(text: str = "name", rows: int = 1) -> View:
    """Every part with so many rows, and the text wherever one can come from an object or from the reader."""
    queue = QueueRow(
        text, text, 1, text, (KeyRow(text, "4", "2", "1", "3"), KeyRow(text, "", "1", "0", "0")), 2
    )
    waits = WaitingRow(text, text, 2, 7, 3, text, NOON - 4000, text, text)
    node = NodeRow(text, (CardRow(text, 3, 8),), (ShareRow(0, 30, 100, 1024, 8192),))
    extent = Extent(0, rows)
    change = Change(NOON - 60, text, text, text)
    return View(
        taken=NOON,
        source=text,
        wish=Wish(find=text, namespace=text, own=text),
        queues=Queues((queue,) * rows, extent, subtrees=True),
        waiting=Waiting((waits,) * rows, extent, text),
        nodes=Nodes((node,) * rows, extent),
        changes=Changes(
            NOON - 3600,
            1,
            2,
            3,
            (change,) * rows,
            text,
            gone=4,
            known=NOON - 1800,
            quotas=(QuotaChange(NOON - 30, text, text),) * rows,
        ),
        hours=Hours(("2027-01-14", text), NOON, (HoursRow(text, text, (1.5, 0.0), 1.5, 2.0, 3.0),) * rows, 1),
        notes=(text,),
    )


def empty() -> View:
    """A cluster in which nothing is."""
    nothing = Extent(0, 0)
    return View(
        taken=NOON,
        source="leader",
        wish=Wish(),
        queues=Queues((), nothing, subtrees=False),
        waiting=Waiting((), nothing, ""),
        nodes=Nodes((), nothing),
        changes=Changes(NOON - 3600, 0, 0, 0, (), ""),
        hours=Hours((), NOON, (), 0),
    )


def written(view: View) -> str:
    """The page."""
    return finish(document(view))


@dataclass
class Element:
    """An element, and all the text in it."""

    kind: str
    attributes: dict[str, str]
    text: str = ""
    inside: list["Element"] = field(default_factory=list)

    def all(self, kind: str = "") -> list["Element"]:
        """Those in it, at any depth."""
        found = []
        for one in self.inside:
            found += [one] if not kind or one.kind == kind else []
            found += one.all(kind)
        return found


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"doubled attribute in {tag}: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().kind == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def parsed(page: str) -> Element:
    """The page as a tree; every element is closed where it should be."""
    tree = _Tree()
    tree.feed(page)
    tree.close()
    assert len(tree.open) == 1, f"left open: {[one.kind for one in tree.open]}"
    return tree.open[0]
