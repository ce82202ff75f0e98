"""The record of an assignment on a pod, `cardquota.io/assigned`: which card the pod got, and how many."""

import json
from functools import lru_cache
from typing import Final

from core.cards.quota import CardJsonError, parse_request

_SHORT: Final = 256
"""Longest text that is remembered, so that odd annotations cannot fill the memory."""


@lru_cache(maxsize=4096)
def render_assigned(card: str, count: int) -> str:
    """The annotation's text for so many whole cards."""
    return json.dumps({card: count}, separators=(",", ":"))


def read_assigned(text: str) -> tuple[str, int] | None:
    """(card, whole cards), or None for a text that we cannot have written: one card per pod, counted in whole cards."""
    return _remembered(text) if len(text) <= _SHORT else _read(text)


def _read(text: str) -> tuple[str, int] | None:
    try:
        entries = parse_request(text)
    except CardJsonError:
        return None
    return next(iter(entries.items())) if len(entries) == 1 else None


_remembered = lru_cache(maxsize=4096)(_read)
"""A cluster has few different records, and each is read again whenever its pod changes."""
