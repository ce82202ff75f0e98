"""Quantities as the grammar of the API server has them: what is read of any text is compared with it."""

import re
from fractions import Fraction
from typing import Final

from core import quantity

_FORM: Final = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i|)", re.ASCII)
_POWERS: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_LARGEST: Final = Fraction(2**63 - 1)


def quantities(data: bytes) -> None:
    """A quantity is read as the grammar of the API server says, finer than a nano-unit rounded up, too large cut."""
    text = data.decode("utf-8", "replace")
    found = _FORM.fullmatch(text)
    try:
        read = quantity.parse(text)
    except quantity.QuantityError:
        assert found is None or len(text) > quantity.MAX_LENGTH
        return
    assert found is not None
    sign, digits, suffix = found.groups()
    if suffix[:1] in ("e", "E") and suffix not in _POWERS:
        exponent = max(-400, min(400, int(suffix[1:])))
        value = Fraction(f"0{digits}" if digits[0] == "." else digits.rstrip(".")) * Fraction(10) ** exponent
    else:
        value = Fraction(f"0{digits}" if digits[0] == "." else digits.rstrip(".")) * _POWERS[suffix]
    nano = -(-(value * 10**9) // 1)
    expected = min(Fraction(nano, 10**9), _LARGEST)
    assert read == (-expected if sign == "-" else expected), text
    assert quantity.milli(text) == -((-read * 1000) // 1)
