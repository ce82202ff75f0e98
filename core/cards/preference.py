"""Which node is preferred for a pod that accepts several cards."""

from collections.abc import Container
from fractions import Fraction
from typing import Final

PREFERENCE_MAX: Final = 100


def preference(alternatives: tuple[str, ...], on_node: Container[str]) -> tuple[str, Fraction] | None:
    """The leftmost alternative that the node has, and how much the node is preferred for it; None when it has none.

    100 for the first alternative, half as much for each one further right, exact. Where there is no choice no node is
    preferred.
    """
    for position, card in enumerate(alternatives):
        if card in on_node:
            chosen = len(alternatives) > 1
            return card, Fraction(PREFERENCE_MAX, 2**position) if chosen else Fraction(0)
    return None
