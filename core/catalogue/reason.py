"""What the catalogue holds of a code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """A code that never changes its meaning, one line of what it says, and the way out."""

    code: str
    meaning: str
    remedy: str
