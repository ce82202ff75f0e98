"""What somebody may have meant by a name that is not there."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from core import spelling

_MOST: Final = 20_000
"""Names that are looked at, a second's work; in a larger cluster the answer may be missing, not wrong."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one; empty where none is much like it."""
    return spelling.nearest(name, islice(known, _MOST))


def instead(name: str, known: Iterable[str]) -> str:
    """The same as the end of a message: `; did you mean NAME?`, or nothing."""
    from cli.output import printable

    near = nearest(name, known)
    return f"; did you mean {printable(near)}?" if near else ""
