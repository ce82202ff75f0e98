"""Namespaces by name: `research, team-*, *-dev`, where `*` stands for any characters, or none.

A name costs one look-up however many are listed. A pattern is matched piece by piece from left to right, never going back,
so it costs no more than its length times that of the name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.violations import show

MAX_LENGTH: Final = 16_384
"""Longest list, in characters."""
MAX_ITEMS: Final = 256
"""Names and patterns in a list."""
MAX_ITEM_LENGTH: Final = 63
"""Longest name or pattern: the longest name of a namespace."""

_BLANKS: Final = " \t\r\n"
_ITEM: Final = re.compile(r"[a-z0-9*](?:[-a-z0-9*]*[a-z0-9*])?")


class PatternError(ValueError):
    """The text is no list of names and patterns; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """Names, and patterns as the pieces between their stars; without any nobody is meant."""

    names: frozenset[str]
    patterns: tuple[tuple[str, ...], ...]

    def match(self, name: str) -> bool:
        """Whether a namespace of this name is meant."""
        return name in self.names or any(_matches(pieces, name) for pieces in self.patterns)


def parse(text: str) -> Patterns:
    """The names and patterns that a text lists; blanks and empty items are left out. Raises PatternError."""
    if len(text) > MAX_LENGTH:
        raise PatternError(f"has {len(text)} characters, and at most {MAX_LENGTH} are read; {_INSTEAD}")
    items = dict.fromkeys(item for item in (part.strip(_BLANKS) for part in text.split(",")) if item)
    if len(items) > MAX_ITEMS:
        raise PatternError(f"lists {len(items)} names, and at most {MAX_ITEMS} are read; {_INSTEAD}")
    for item in items:
        _check(item)
    return Patterns(
        names=frozenset(item for item in items if "*" not in item),
        patterns=tuple(dict.fromkeys(tuple(item.split("*")) for item in items if "*" in item)),
    )


_INSTEAD: Final = "write patterns, or a label selector instead"


def _check(item: str) -> None:
    if len(item) > MAX_ITEM_LENGTH:
        raise PatternError(
            f"{show(item)} has {len(item)} characters, and no name of a namespace has more than {MAX_ITEM_LENGTH}"
        )
    if not _ITEM.fullmatch(item):
        raise PatternError(
            f"{show(item)} can be the name of no namespace: lower-case letters, digits and inner dashes, "
            "* for any of them, and commas between names"
        )


def _matches(pieces: Sequence[str], name: str) -> bool:
    """Whether a name is the pieces in this order with anything between them.

    Each inner piece is taken where it comes first: what follows then has the most room.
    """
    first, *inner, last = pieces
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    position, end = len(first), len(name) - len(last)
    for piece in inner:
        found = name.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
