"""The whole page."""

from base64 import b64encode
from hashlib import sha256
from typing import Final

from core.page.html.links import address
from core.page.html.marks import Markup, moment, tag
from core.page.html.sections import changes, hours, nodes, queues, waiting
from core.page.html.style import SCRIPT, STYLE
from core.page.view import View, Wish
from core.steps import Steps


def _source(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src {_source(STYLE)}; script-src {_source(SCRIPT)}; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""With which the page has to be served: it runs its own script and nothing else, and is kept nowhere."""


def document(view: View) -> Steps[str]:
    """The page, ready to be sent in UTF-8; with pauses."""
    parts = yield from _parts(view)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", "cardquota: queues, cards and who waits"),
        # An empty icon: without any a browser asks the server for one.
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE)),
    )
    body = tag("body", *parts, tag("script", Markup(SCRIPT)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _parts(view: View) -> Steps[list[Markup]]:
    tables: list[Markup] = []
    if view.queues is not None:
        tables.append((yield from queues(view.queues, view.wish)))
    if view.waiting is not None:
        tables.append((yield from waiting(view.waiting, view.wish, view.taken)))
    if view.nodes is not None:
        tables.append((yield from nodes(view.nodes, view.wish)))
    if view.changes is not None:
        tables.append((yield from changes(view.changes)))
    if view.hours is not None:
        tables.append((yield from hours(view.hours)))
    yield
    told = tag("p", *_as_of(view), "Told by ", tag("bdi", view.source), ". Nothing can be changed here.")
    return [
        tag("a", "To the tables", href="#main", class_="skip"),
        _header(view),
        tag("main", *tables, id="main", tabindex=-1),
        tag("footer", told),
    ]


def _header(view: View) -> Markup:
    notes = [tag("p", one) for one in view.notes]
    return tag(
        "header",
        tag("h1", "cardquota"),
        tag("p", "Queues, cards and who waits. ", *_as_of(view), class_="note"),
        _tiles(view),
        _form(view.wish),
        *((tag("div", *notes, class_="notes", role="note"),) if notes else ()),
    )


def _as_of(view: View) -> tuple[str, ...]:
    """When it was so; a file may say nothing of any time."""
    return ("As of ", moment(view.taken), ". ") if view.taken else ()


def _tiles(view: View) -> Markup:
    found: list[tuple[str, int, str, str]] = []
    if view.queues is not None:
        found.append(("queues", view.queues.extent.of, "queue", "queues"))
    if view.waiting is not None:
        found.append(("waiting", view.waiting.extent.of, "pod waits", "pods wait"))
    if view.nodes is not None:
        found.append(("nodes", view.nodes.extent.of, "node with cards", "nodes with cards"))
    if view.changes is not None:
        found.append(
            ("changes", view.changes.started, "pod got a node in an hour", "pods got a node in an hour")
        )
    tiles = [
        tag("li", tag("a", tag("strong", f"{number:,}"), " ", one if number == 1 else many, href=f"#{part}"))
        for part, number, one, many in found
    ]
    return tag("nav", tag("ul", *tiles, class_="tiles"), aria_label="Parts of the page")


def _form(wish: Wish) -> Markup:
    """What is shown. Without script it works as well; the box for loading anew is there with it only."""
    find = tag("input", type="search", name="find", value=wish.find, maxlength=253)
    namespace = tag("input", type="text", name="namespace", value=wish.namespace, maxlength=253)
    own = (tag("input", type="hidden", name="own", value=wish.own),) if wish.own else ()
    return tag(
        "form",
        tag("label", "Queue, pod, reason or node", find),
        tag("label", "Namespace of pods", namespace),
        *own,
        tag("button", "Show", type="submit"),
        tag("a", "Everything", href=address(Wish(own=wish.own)) or "?"),
        tag(
            "label",
            tag("input", type="checkbox", id="again"),
            "Load anew every 30 s",
            class_="again",
            hidden=True,
        ),
        method="get",
        role="search",
    )
