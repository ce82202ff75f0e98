"""The answer 'no' of every book: a code and the words for the user."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why something does not fit: a code of core.reasons and the message for the user."""

    reason: str
    message: str
