"""What quota messages add for people: whole cards, cores and Gi, and the way out.

The texts before it are those that Volcano users have in their alerts, in thousandths; they stay word for word.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

_TOLD: Final = 4
_GI_MILLI: Final = 1000 * 2**30


class Use(NamedTuple):
    """How much of a card's quota is in use, in thousandths."""

    card: str
    used: int
    limit: int


def in_cards(asked: int, uses: Sequence[Use]) -> str:
    """What is asked for, and how the quota stands of the card, or of each that would do; amounts in thousandths."""
    wanted = _shown(Fraction(asked, 1000))
    if all(asked > use.limit for use in uses):
        quotas = ", ".join(f"{_cards(use.limit)}{_of(use, uses)}" for use in uses[:_TOLD])
        return f"In cards: asks for {wanted}, more than the whole quota ({quotas}); ask for fewer, or raise the quota."
    state = ", ".join(f"{_cards(use.used)} of {_cards(use.limit)}{_of(use, uses)}" for use in uses[:_TOLD])
    more = f" and {len(uses) - _TOLD} more" if len(uses) > _TOLD else ""
    return f"In cards: asks for {wanted}, {state}{more} are in use; wait for cards to come back, or raise the quota."


def in_cores(asked: int, used: int, limit: int) -> str:
    """The same of CPU, in thousandths of a core."""
    return _beside("cores", Fraction(asked, 1000), Fraction(used, 1000), Fraction(limit, 1000), "cpu")


def in_gi(asked: int, used: int, limit: int) -> str:
    """The same of memory, in thousandths of a byte."""
    wanted, taken, most = (Fraction(amount, _GI_MILLI) for amount in (asked, used, limit))
    return _beside("Gi", wanted, taken, most, "memory")


def _beside(unit: str, asked: Fraction, used: Fraction, limit: Fraction, key: str) -> str:
    if asked > limit:
        way_out = (
            f"more than the whole capability of {_shown(limit)}; ask for less, or raise spec.capability.{key}"
        )
        return f"In {unit}: asks for {_shown(asked)}, {way_out}."
    state = f"{_shown(used)} of {_shown(limit)} are in use"
    return (
        f"In {unit}: asks for {_shown(asked)}, {state}; wait for pods to end, or raise spec.capability.{key}."
    )


def _of(use: Use, uses: Sequence[Use]) -> str:
    return f" <{use.card}>" if len(uses) > 1 else ""


def _cards(milli: int) -> str:
    return _shown(Fraction(milli, 1000))


def _shown(amount: Fraction) -> str:
    """Up to three decimals, rounded up, so that nothing is shown as none; whole numbers in full."""
    thousandths = -(-amount.numerator * 1000 // amount.denominator)
    whole, rest = divmod(thousandths, 1000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else str(whole)
