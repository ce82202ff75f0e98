"""The annotation that gives each container its number of cards: `2,1,3`."""

import re
from typing import Final

_ENTRY: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_CHECKED: Final = 4096
"""Entries looked at; no pod has that many containers."""


class CardCountsError(ValueError):
    """The text is no list of whole numbers; `str()` says why, without repeating the text."""


def parse_counts(text: str) -> tuple[int, ...]:
    """One number per container, in the order of `spec.containers`; a negative one is still a number here.

    Raises CardCountsError for anything but ASCII digits with an optional minus sign between commas: blanks, plus
    signs, underscores and digits of other scripts, all of which `int()` reads, are mistakes in an annotation.
    """
    entries = text.split(",", _CHECKED)
    if len(entries) > _CHECKED:
        raise CardCountsError(f"must be comma-separated whole numbers, at most {_CHECKED} of them")
    for position, entry in enumerate(entries, start=1):
        if not _ENTRY.fullmatch(entry):
            raise CardCountsError(
                "must be comma-separated whole numbers without blanks, one per container, such as 2,1:"
                f" entry {position} is {_why(entry)}"
            )
    return tuple(map(int, entries))


def _why(entry: str) -> str:
    if not entry.strip():
        return "blank"
    if re.fullmatch(r"-?[0-9]+", entry, re.ASCII):
        return "longer than 9 digits"
    return "not a whole number"
