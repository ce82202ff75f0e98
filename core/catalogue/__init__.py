"""The catalogue of reasons: what each code means and what to do about it.

The message itself is built where the numbers are; the remedy is the same everywhere.
"""

from typing import Final

from core.catalogue import nodes, objects, waiting
from core.catalogue.reason import Reason

__all__ = ["CATALOGUE", "Reason", "remedy"]


def _catalogue(*reasons: Reason) -> dict[str, Reason]:
    catalogue = {reason.code: reason for reason in reasons}
    if len(catalogue) != len(reasons):
        raise ValueError("a reason code is listed twice")
    return catalogue


CATALOGUE: Final = _catalogue(*waiting.ROWS, *objects.ROWS, *nodes.ROWS)


def remedy(code: str) -> str:
    """The way out of a reason. Raises KeyError for a code that the catalogue does not hold."""
    return CATALOGUE[code].remedy
