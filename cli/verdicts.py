"""What `verify` says: one line for each thing that it looks at."""

from collections.abc import Iterable
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
    found = list(wrong)
    told = [Verdict(check, "wrong", text) for text in found[:_MOST]]
    if len(found) > _MOST:
        told.append(Verdict(check, "wrong", f"and {len(found) - _MOST} more"))
    return told or [Verdict(check, "ok", sound)]
