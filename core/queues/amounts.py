"""Amounts of CPU, memory and cards side by side, in thousandths; a key that is absent equals zero."""

from collections.abc import Iterable, Mapping
from typing import Final

from core.cards.expression import BAR
from core.names import MGPU_RESOURCES

Amounts = Mapping[str, int]
"""`cpu` (thousandths of a core), `memory` (thousandths of a byte), and cards by name or by expression."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
CPU_AND_MEMORY: Final = (CPU, MEMORY)


def is_card(key: str) -> bool:
    """Whether a key of a queue's sums is the name of one card; an expression with the choice still open is none."""
    return key not in MGPU_RESOURCES and BAR not in key


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    """The sum of all parts; what sums up to zero is left out."""
    sums: dict[str, int] = {}
    for part in parts:
        for key, milli in part.items():
            sums[key] = sums.get(key, 0) + milli
    return {key: milli for key, milli in sums.items() if milli}


def beyond(amounts: Amounts, others: Amounts) -> dict[str, int]:
    """What `amounts` hold over and above `others`, never below zero; what is nothing is left out."""
    over = {key: milli - others.get(key, 0) for key, milli in amounts.items()}
    return {key: milli for key, milli in over.items() if milli > 0}


def cpu_memory(resources: Amounts) -> dict[str, int]:
    """Only the CPU and memory of a resource list."""
    return {key: resources[key] for key in CPU_AND_MEMORY if key in resources}


def add(sums: dict[str, int], amounts: Amounts, sign: int) -> None:
    """Adds amounts to sums, or takes them out with a `sign` of -1; what comes to zero is left out."""
    for key, amount in amounts.items():
        left = sums.get(key, 0) + sign * amount
        if left:
            sums[key] = left
        else:
            sums.pop(key, None)
