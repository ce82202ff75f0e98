"""What is wrong with the amounts of one container: the rules for shared and for full cards.

One place for admission, which shows every fault with its path, and for the scheduling side, which only needs to
know whether a pod that slipped past admission can be served.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from core import names, reasons

FULL_CARD: Final = 100
"""mgpu-core of one whole card."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule. `key` is the resource or the annotation it is about; `missing`: that key is not there."""

    code: str
    key: str
    detail: str
    missing: bool = False


def normal_faults(core: int | None, memory: int | None, floor: int) -> Iterator[Fault]:
    """Faults of a container that asks, in a pod without card counts. `memory` and `floor` in MiB, None = absent."""
    if core is None or core <= 0:
        yield _core_not_positive(missing=core is None)
        if memory is not None and memory <= 0:
            yield _memory_not_positive(f"at least {floor} MiB")
    elif core < FULL_CARD:
        if memory is not None and memory <= 0:
            yield _memory_not_positive(f"at least {floor} MiB")
        elif (memory or 0) < floor:
            detail = f"{names.MGPU_MEMORY} must be at least {floor} MiB where mgpu-core is below {FULL_CARD}"
            yield Fault(reasons.MGPU_MEMORY, names.MGPU_MEMORY, detail, missing=memory is None)
    elif core % FULL_CARD:
        detail = f"{names.MGPU_CORE} above {FULL_CARD} must be a multiple of {FULL_CARD}"
        yield Fault(reasons.MGPU_CORE, names.MGPU_CORE, detail)
    elif memory is not None:
        yield _memory_of_full_card()


def multi_faults(core: int | None, memory: int | None, count: int, floor: int) -> Iterator[Fault]:
    """Faults of one container, asking or not, that the card counts give `count` cards; `floor` is MiB per card."""
    asks = core is not None or memory is not None
    if count < 0:
        detail = f"{names.MGPU_MULTIPLE_ANNOTATION} must not be negative: the container's entry is {count}"
        yield Fault(reasons.MGPU_CARD_COUNTS, names.MGPU_MULTIPLE_ANNOTATION, detail)
    elif count == 0:
        if asks:
            detail = f"gets 0 cards but asks for mGPU, see {names.MGPU_MULTIPLE_ANNOTATION}"
            yield Fault(reasons.MGPU_CARD_COUNTS, names.MGPU_MULTIPLE_ANNOTATION, detail)
    elif not asks:
        detail = f"{names.MGPU_CORE} must be greater than 0: container-multiple-gpu gives the container {_cards(count)}"
        yield Fault(reasons.MGPU_CARD_COUNTS, names.MGPU_CORE, detail, missing=True)
    elif core is None or core <= 0:
        yield _core_not_positive(missing=core is None)
        if memory is not None and memory <= 0:
            yield _memory_not_positive(f"at least {floor} MiB per card")
    elif core == FULL_CARD * count:
        if memory is not None:
            yield _memory_of_full_card()
    else:
        yield from _split_faults(core, memory, count, floor)


def _split_faults(core: int, memory: int | None, count: int, floor: int) -> Iterator[Fault]:
    """A share over `count` cards: enough memory on each, equal parts, no more than one card's core on each."""
    if memory is not None and memory <= 0:
        yield _memory_not_positive(f"at least {floor} MiB per card")
    elif (memory or 0) // count < floor:
        given = f"{memory or 0} over {_cards(count)} is {(memory or 0) // count}"
        detail = f"{names.MGPU_MEMORY} must be at least {floor} MiB per card: {given}"
        yield Fault(reasons.MGPU_MEMORY, names.MGPU_MEMORY, detail, missing=memory is None)
    for code, key, amount in (
        (reasons.MGPU_CORE, names.MGPU_CORE, core),
        (reasons.MGPU_MEMORY, names.MGPU_MEMORY, memory or 0),
    ):
        if amount % count:
            yield Fault(code, key, f"{key} must be divisible by {count}, the container's number of cards")
    if core > FULL_CARD * count:
        detail = (
            f"{names.MGPU_CORE} must be at most {FULL_CARD} per card: {core} over {_cards(count)} is more"
        )
        yield Fault(reasons.MGPU_CORE, names.MGPU_CORE, detail)


def _cards(count: int) -> str:
    return "1 card" if count == 1 else f"{count} cards"


def _core_not_positive(*, missing: bool) -> Fault:
    detail = f"{names.MGPU_CORE} must be greater than 0"
    if missing:
        detail += " where mgpu-memory is set"
    return Fault(reasons.MGPU_QUANTITY, names.MGPU_CORE, detail, missing)


def _memory_not_positive(floor: str) -> Fault:
    return Fault(
        reasons.MGPU_QUANTITY, names.MGPU_MEMORY, f"{names.MGPU_MEMORY} must be greater than 0, {floor}"
    )


def _memory_of_full_card() -> Fault:
    detail = f"{names.MGPU_MEMORY} must not be set for full cards: they come with all their memory"
    return Fault(reasons.MGPU_MEMORY, names.MGPU_MEMORY, detail)
