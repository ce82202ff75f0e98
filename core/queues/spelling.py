"""Which queue somebody may have meant by a name that no queue has."""

from functools import lru_cache

from core import spelling
from core.queues.books import Books

_MOST = 200
"""Queues whose names are compared, a millisecond's work for a name that is new; among more of them nothing is suggested."""

_LONGEST = 253
"""Characters of a name that an object can have."""


def nearest(name: str, namespace: str, books: Books) -> str:
    """The queue whose name is most like this one, if it is open to the namespace; empty where there is none."""
    near = ""
    if len(name) <= _LONGEST and len(books.queues) <= _MOST:
        near = _nearest(name, tuple(books.queues))
    return near if near and books.access.refusal(near, namespace) is None else ""


@lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[str, ...]) -> str:
    return spelling.nearest(name, known)
