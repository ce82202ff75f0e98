"""What `verify` says: one line for each thing that it looks at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Result = Literal["ok", "wrong", "unknown"]

_MOST: Final = 20
"""Lines about one thing; what is wrong in a thousand places has one cause."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one thing is as it should be, and in one line what was found."""

    check: str
    result: Result
    text: str


def verdicts(check: str, wrong: Iterable[str], sound: str) -> list[Verdict]:
    """A line for each thing that is wrong, the first of them, or one that says that all is well."""
    return shortened([Verdict(check, "wrong", text) for text in wrong]) or [Verdict(check, "ok", sound)]


def shortened(found: Sequence[Verdict]) -> list[Verdict]:
    """The first of many lines about one thing, and how many more there are."""
    told = list(found[:_MOST])
    if len(found) > _MOST:
        told.append(Verdict(found[0].check, found[0].result, f"and {len(found) - _MOST} more"))
    return told
