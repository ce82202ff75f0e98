"""Amounts as people read them: whole cards, cores, Gi; never thousandths."""

from typing import Final

from core import names
from core.queues.amounts import MEMORY

_GI: Final = 2**30
_MI: Final = 2**20


def whole(milli: int) -> int:
    """Thousandths rounded up to whole units, in thousandths."""
    return -(-milli // 1000) * 1000


def amount(key: str, milli: int) -> str:
    """An amount of a key of the quota, with its unit where the key does not say it."""
    if key == MEMORY:
        unit = _GI if milli >= _GI * 1000 else _MI
        return f"{_decimal(milli, 1000 * unit)}{'Gi' if unit == _GI else 'Mi'}"
    if key == names.MGPU_MEMORY:
        return f"{_decimal(milli, 1000)} MiB"
    return _decimal(milli, 1000)


def amounts(of: dict[str, int]) -> str:
    """Several of them, by key."""
    return ", ".join(f"{amount(key, milli)} {key}" for key, milli in sorted(of.items()))


def _decimal(value: int, unit: int) -> str:
    """Up to three decimals, rounded up, so that nothing is shown as none."""
    whole_part, rest = divmod(-(-value * 1000 // unit), 1000)
    return f"{whole_part}.{rest:03d}".rstrip("0") if rest else str(whole_part)


def listed(things: list[str], most: int = 3) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return ", ".join(things[:most]) + more


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
