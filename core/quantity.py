"""Kubernetes quantities, exactly.

The grammar that the API server documents, read into `Fraction`, so that no comparison ever sees a float. As
there, what is finer than a nano-unit is rounded away from zero. A magnitude above 2**63 - 1 is cut to that; the
API server does so for binary suffixes only, but no amount of anything comes near.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

MAX_LENGTH: Final = 256
"""Longest text that is read; a longer one can only be a mistake or an attack."""

_CAP: Final = Fraction(2**63 - 1)
_NANO: Final = 10**9
_PLAIN: Final = 15
"""Digits alone, up to so many of them, are no matter of rounding or cutting."""
_EXACT: Final = 2**53
"""Integers up to this size are no matter of rounding or cutting."""
_EXPONENT_LIMIT: Final = 1000

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)
_SCALES: Final[dict[str | None, Fraction]] = {
    None: Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{suffix: Fraction(10 ** (3 * (i + 1))) for i, suffix in enumerate("kMGTPE")},
    **{suffix + "i": Fraction(2 ** (10 * (i + 1))) for i, suffix in enumerate("KMGTPE")},
}


class QuantityError(ValueError):
    """A value that is no Kubernetes quantity; `str()` says why, without repeating the value."""


def parse(value: object) -> Fraction:
    """The exact value of a quantity as it stands in JSON: a string or a bare number.

    Raises QuantityError. `null` is no quantity here, although the API server reads it as 0: whoever wrote it
    meant something else.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        # Digits are counted first: rendering an integer of millions of digits is refused by Python itself.
        return _parse_text(str(value)) if abs(value) <= 2**64 else (_CAP if value > 0 else -_CAP)
    if isinstance(value, float):
        return _parse_text(repr(value))
    raise QuantityError("must be a quantity, such as 4, 500m or 16Gi")


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Fraction:
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"must be at most {MAX_LENGTH} characters long")
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise QuantityError("must be a quantity, such as 4, 500m or 16Gi")
    magnitude = _scaled(_decimal(match["digits"]), match["suffix"], match["exponent"])
    return -magnitude if match["sign"] == "-" else magnitude


def _decimal(digits: str) -> Fraction:
    whole, _, fraction = digits.partition(".")
    return Fraction(int(whole + fraction or "0"), 10 ** len(fraction))


def _scaled(number: Fraction, suffix: str | None, exponent: str | None) -> Fraction:
    """`number` (>= 0) times its suffix, rounded up to a nano-unit and cut at 2**63 - 1."""
    if number == 0:
        return number
    if exponent is None:
        scaled = number * _SCALES[suffix]
    else:
        # An exponent beyond the limit decides alone whether the value is cut or a single nano-unit is left.
        power = max(-_EXPONENT_LIMIT, min(_EXPONENT_LIMIT, int(exponent)))
        scaled = number * Fraction(10) ** power
    if scaled >= _CAP:
        return _CAP
    return Fraction(_ceil(scaled * _NANO), _NANO)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def units(value: object) -> int:
    """The quantity in whole units, rounded up (what the API machinery calls `Value()`). Raises QuantityError."""
    return _ceil(parse(value))


def milli(value: object) -> int:
    """The quantity in thousandths, rounded up (`MilliValue()`). Raises QuantityError."""
    if isinstance(value, str):
        return milli_of_text(value)
    if type(value) is int and abs(value) <= _EXACT:
        return value * 1000
    return _ceil(parse(value) * 1000)


@lru_cache(maxsize=4096)
def milli_of_text(text: str) -> int:
    """As `milli`; remembered, as a cluster writes the same few amounts over and over."""
    if len(text) <= _PLAIN and text.isdecimal() and text.isascii():
        return int(text) * 1000
    return _ceil(_parse_text(text) * 1000)


def is_whole(value: Fraction) -> bool:
    """Whether the value has no fractional part."""
    return value.denominator == 1


def render_milli(value: int) -> str:
    """A number of thousandths as the shortest plain quantity: 2000 -> `2`, 1500 -> `1500m`."""
    whole, rest = divmod(value, 1000)
    return str(whole) if rest == 0 else f"{value}m"


def render_amounts(milli: Mapping[str, int], *, zero: bool = False) -> dict[str, str]:
    """Thousandths as quantities, sorted by key; what is zero is left out unless it is to be told apart from absent."""
    return {key: render_milli(amount) for key, amount in sorted(milli.items()) if amount or zero}
