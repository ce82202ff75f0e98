"""Numbers in the messages of quota: printed as Go prints a float with %v.

The messages first came from a Go program, and people match them in alerts, large numbers included (1e+06).
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

_PLAIN: Final = range(-4, 6)
"""The decimal exponents of numbers that Go prints without one."""


@lru_cache(maxsize=4096)
def go_float(value: int | Fraction) -> str:
    """5000, 1.5, 1e+06: the shortest digits that make out the float nearest to `value`. For display only."""
    # repr() finds the same shortest digits; only where it puts the exponent differs.
    digits = Decimal(repr(float(value))).normalize()
    exponent = digits.adjusted()
    if not digits or exponent in _PLAIN:
        return f"{digits:f}"
    return f"{digits.scaleb(-exponent):f}e{exponent:+03d}"
