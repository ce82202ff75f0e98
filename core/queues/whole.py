"""What quota messages add for people: whole cards, cores and Gi, and the way out.

The texts before it are those that Volcano users have in their alerts, in thousandths; they stay word for word.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

FEWER: Final = "ask for fewer, or "
LESS: Final = "ask for less, or "
"""Left out where the limit is zero and there is no less to ask for."""

_TOLD: Final = 4
_MILLI: Final = 1000
_GI_MILLI: Final = 1000 * 2**30


class Use(NamedTuple):
    """How much of a card's quota is in use, in thousandths."""

    card: str
    used: int
    limit: int


def in_cards(asked: int, uses: Sequence[Use]) -> str:
    """What is asked for, and how the quota stands of the card, or of each that would do; amounts in thousandths."""
    wanted = f"In cards: asks for {_shown(asked)}"
    if all(asked > use.limit for use in uses):
        quotas = _listed(f"{_shown(use.limit)}{_of(use, uses)}" for use in uses)
        fewer = FEWER if any(use.limit > 0 for use in uses) else ""
        return f"{wanted}, more than the whole quota ({quotas}); {fewer}raise the quota."
    state = _listed(f"{_shown(use.used)} of {_shown(use.limit)}{_of(use, uses)}" for use in uses)
    return f"{wanted}, {state} are in use; wait for cards to come back, or raise the quota."


def in_units(key: str, asked: int, used: int, limit: int) -> str:
    """The same of shares of mGPU cards: hundredths of a card, or MiB."""
    wanted = f"In whole units: asks for {_shown(asked)}"
    raised = f"raise spec.capability[{key}]."
    if asked > limit:
        less = LESS if limit > 0 else ""
        return f"{wanted}, more than the whole capability ({_down(limit, _MILLI)}); {less}{raised}"
    return (
        f"{wanted}, {_shown(used)} of {_shown(limit)} are in use; wait for shares to come back, or {raised}"
    )


def in_cores(asked: int, used: int, limit: int) -> str:
    """The same of CPU, in thousandths of a core."""
    return _beside("cores", _MILLI, asked, used, limit, "cpu")


def in_gi(asked: int, used: int, limit: int) -> str:
    """The same of memory, in thousandths of a byte."""
    return _beside("Gi", _GI_MILLI, asked, used, limit, "memory")


def _beside(unit: str, per_unit: int, asked: int, used: int, limit: int, key: str) -> str:
    wanted = f"In {unit}: asks for {_shown(asked, per_unit)}"
    raised = f"raise spec.capability.{key}."
    if asked > limit:
        less = LESS if limit > 0 else ""
        return f"{wanted}, more than the whole capability ({_down(limit, per_unit)}); {less}{raised}"
    state = f"{_shown(used, per_unit)} of {_shown(limit, per_unit)} are in use"
    return f"{wanted}, {state}; wait for pods to end, or {raised}"


def _listed(parts: Iterable[str]) -> str:
    """The first few; a choice may name many cards."""
    told = list(parts)
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return ", ".join(told[:_TOLD]) + more


def _of(use: Use, uses: Sequence[Use]) -> str:
    return f" <{use.card}>" if len(uses) > 1 else ""


def _shown(amount: int, per_unit: int = _MILLI) -> str:
    """Up to three decimals, rounded up, so that nothing is shown as none; whole numbers in full."""
    return _decimal(-(-amount * 1000 // per_unit))


def _down(amount: int, per_unit: int) -> str:
    """Rounded down, so that what is more is shown as more."""
    return _decimal(amount * 1000 // per_unit)


def _decimal(thousandths: int) -> str:
    whole, rest = divmod(thousandths, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
