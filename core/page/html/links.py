"""The address of a page: what its query asks for, and links to others of the same view."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Final, Literal
from urllib.parse import parse_qsl, urlencode

from core.page.html.marks import Markup, tag
from core.page.view import Extent, Wish

Paged = Literal["queues", "waiting", "nodes"]

_FIRST: Final = asdict(Wish())
_TURNED: Final[Mapping[Paged, Callable[[Wish, int], Wish]]] = {
    "queues": lambda wish, number: replace(wish, queues=number),
    "waiting": lambda wish, number: replace(wish, waiting=number),
    "nodes": lambda wish, number: replace(wish, nodes=number),
}
_TEXT_MOST: Final = 253
"""Letters of a text; no name is longer."""
_PAGES_MOST: Final = 1_000_000
_FIELDS_MOST: Final = 20


def address(wish: Wish, part: str = "") -> str:
    """The page that a wish is about, at one of its parts; what is as usual is left out."""
    asked = {key: value for key, value in asdict(wish).items() if value != _FIRST[key]}
    return f"?{urlencode(asked)}" + (f"#{part}" if part else "")


def pager(wish: Wish, part: Paged, what: str, extent: Extent, shown: int, size: int) -> Markup:
    """Which rows are shown, and the ways to those before and after them; nothing where there are no others."""
    if extent.of <= shown:
        return Markup()
    number = extent.first // size + 1
    last = extent.first + shown
    ways = []
    if extent.first:
        ways.append(_way(wish, part, number - 1, "Previous", what, "prev"))
    if last < extent.of:
        ways.append(_way(wish, part, number + 1, "Next", what, "next"))
    told = f"{extent.first + 1:,} to {last:,} of {extent.of:,}"
    return tag("nav", tag("span", told), *ways, class_="pager", aria_label=f"Pages of {what}")


def _way(wish: Wish, part: Paged, number: int, word: str, what: str, rel: str) -> Markup:
    there = _TURNED[part](wish, number)
    return tag("a", f"{word} ", tag("span", what, class_="unseen"), href=address(there, part), rel=rel)


def wish_of(query: str) -> Wish:
    """The wish of a query, without `?`. What is not understood counts as not asked for: an address may be typed by hand."""
    try:
        given = dict(parse_qsl(query, max_num_fields=_FIELDS_MOST))
    except ValueError:
        return Wish()
    find, namespace, own = (given.get(key, "").strip()[:_TEXT_MOST] for key in ("find", "namespace", "own"))
    queues, waiting, nodes = (_number(given.get(key, "")) for key in ("queues", "waiting", "nodes"))
    return Wish(find, namespace, own, queues, waiting, nodes)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_PAGES_MOST))):
        return 1
    return min(max(1, int(text)), _PAGES_MOST)
