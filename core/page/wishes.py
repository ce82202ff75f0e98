"""What somebody asks the page for, in the query of its address."""

from typing import Final
from urllib.parse import parse_qsl

from core.page.view import Wish

_TEXT_MOST: Final = 253
"""Letters of a text; no name is longer."""
_PAGES_MOST: Final = 1_000_000
_FIELDS_MOST: Final = 20


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
