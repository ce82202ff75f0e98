"""The answer 'no' of every rule, the same from where it is found to where a person reads it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from core.catalogue import CATALOGUE


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not done: a code of core.reasons, and the message for the user."""

    code: str
    message: str
    unresolvable: bool = False
    """Of a node: it would not do either if all other pods were gone."""
    cut_short: bool = False
    """Whether a search ended by its budget, so that there may be a way that was not found."""

    @property
    def meaning(self) -> str:
        """What the code says, whoever is refused. Raises KeyError for a code that the catalogue does not hold."""
        return CATALOGUE[self.code].meaning

    @property
    def remedy(self) -> str:
        """The way out, by the catalogue. Raises KeyError as `meaning` does."""
        return CATALOGUE[self.code].remedy

    def for_one_below(self, queue: str) -> "Refusal":
        """The same, told to somebody in a queue below the one that the message names."""
        end = "." if self.message.endswith(".") else ""
        return replace(self, message=f"{self.message.removesuffix('.')} (queue {queue} is below it){end}")


def first_above(queue: str, levels: Iterable[Refusal | None]) -> Refusal | None:
    """What the nearest of the levels above a queue says that has too little; None when none has."""
    found = next((short for short in levels if short is not None), None)
    return None if found is None else found.for_one_below(queue)
