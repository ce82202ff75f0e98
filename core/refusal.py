"""The answer 'no' of every rule, the same from where it is found to where a person reads it."""

from dataclasses import dataclass

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
