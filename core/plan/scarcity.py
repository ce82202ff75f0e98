"""What a queue has too little of for a gang, whichever of its members were let in and whatever cards they got.

Asked before any search: for what nobody can have none is needed, and members need to be told apart only by what may run out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.queues.amounts import CPU, MEMORY
from core.queues.check import Balance
from core.queues.entry import Entry
from core.steps import Pace, Steps

_IN_ONE_STEP: Final = 1000
"""Members, and cards that they accept, that are added up in about half a millisecond."""

_CARDS: Final = reasons.INSUFFICIENT_SCALAR_QUOTA
_CODES: Final = {CPU: reasons.INSUFFICIENT_CPU_QUOTA, MEMORY: reasons.INSUFFICIENT_MEMORY_QUOTA}


@dataclass(frozen=True, slots=True)
class Means:
    """What is left of a queue, for so many of a gang's members."""

    lacking: frozenset[str] = frozenset()
    """The codes of what cannot suffice; nothing here says that all the rest does."""
    tight: bool = False
    """Whether CPU or memory would not suffice for all members, so that it matters who asks for how much of them."""


def means_of(balance: Balance | None, entries: Sequence[Entry], wanted: int) -> Steps[Means]:
    """What is left for `wanted` of these members."""
    if balance is None:
        return Means()
    pace = Pace(_IN_ONE_STEP)
    sizes: list[int] = []
    takers: dict[str, list[int]] = {}
    weights: dict[str, list[int]] = {CPU: [], MEMORY: []}
    for entry in entries:
        asked = entry.demand.card
        if asked is None:
            continue
        if pace.due(1 + len(asked.alternatives)):
            yield
        for key, amounts in weights.items():
            amounts.append(entry.demand.cpu_memory.get(key, 0))
        if asked.milli > 0:
            sizes.append(asked.milli)
            for card in asked.alternatives:
                takers.setdefault(card, []).append(asked.milli)
    lacking = (
        set() if _cards_suffice(balance, sizes, takers, wanted - (len(entries) - len(sizes))) else {_CARDS}
    )
    tight = False
    for key, amounts in weights.items():
        left = balance.cpu_memory_room(key)
        if left is not None:
            tight = tight or sum(amounts) > left
            if _least(amounts, wanted - (len(entries) - len(amounts))) > max(0, left):
                lacking.add(_CODES[key])
    return Means(frozenset(lacking), tight)


def _cards_suffice(balance: Balance, sizes: Sequence[int], takers: dict[str, list[int]], wanted: int) -> bool:
    """Whether there may be cards for so many members: by their number on each card, and by what all ask for together."""
    left = {card: max(0, balance.card_room(card)) for card in takers}
    served = sum(min(len(asked), left[card] // min(asked)) for card, asked in takers.items())
    return served >= wanted and _least(sizes, wanted) <= sum(left.values())


def _least(amounts: Iterable[int], number: int) -> int:
    """What those ask for together who ask for least."""
    return sum(sorted(amounts)[: max(0, number)])
