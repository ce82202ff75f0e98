"""What a queue has too little of for a gang, whichever of its members were let in and whatever cards they got.

Asked before any search: for what nobody can have none is needed, and members need to be told apart only by what may run out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.queues.amounts import CPU, MEMORY
from core.queues.check import Balance
from core.queues.entry import Entry
from core.steps import Pace, Steps, batched, in_order

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
    takers: dict[str, tuple[int, int]] = {}
    weights: dict[str, list[int]] = {CPU: [], MEMORY: []}
    totals = dict.fromkeys(weights, 0)
    for entry in entries:
        asked = entry.demand.card
        if asked is None:
            continue
        if pace.due(1 + len(asked.alternatives)):
            yield
        for key, amounts in weights.items():
            amount = entry.demand.cpu_memory.get(key, 0)
            amounts.append(amount)
            totals[key] += amount
        if asked.milli > 0:
            sizes.append(asked.milli)
            for card in asked.alternatives:
                number, smallest = takers.get(card, (0, asked.milli))
                takers[card] = number + 1, min(smallest, asked.milli)
    suffice = yield from _cards_suffice(balance, sizes, takers, wanted - (len(entries) - len(sizes)))
    lacking = set() if suffice else {_CARDS}
    tight = False
    for key, amounts in weights.items():
        left = balance.cpu_memory_room(key)
        if left is not None:
            tight = tight or totals[key] > left
            if (yield from least(amounts, wanted - (len(entries) - len(amounts)))) > max(0, left):
                lacking.add(_CODES[key])
    return Means(frozenset(lacking), tight)


def _cards_suffice(
    balance: Balance, sizes: Sequence[int], takers: Mapping[str, tuple[int, int]], wanted: int
) -> Steps[bool]:
    """Whether there may be cards for so many members: by their number on each card, and by what all ask for together.

    `takers` are how many accept each card, and how little one of them asks for.
    """
    left = {card: max(0, balance.card_room(card)) for card in takers}
    served = sum(min(number, left[card] // smallest) for card, (number, smallest) in takers.items())
    return served >= wanted and (yield from least(sizes, wanted)) <= sum(left.values())


def least(amounts: Sequence[int], number: int) -> Steps[int]:
    """What so many ask for together who ask for least."""
    counts: Counter[int] = Counter()
    pace = Pace(_IN_ONE_STEP)
    for some in batched(amounts, _IN_ONE_STEP):
        if pace.due(len(some)):
            yield
        counts.update(some)
    total = 0
    for amount in (yield from in_order(tuple(counts), _itself, _IN_ONE_STEP)):
        if pace.due():
            yield
        if number <= 0:
            break
        total += amount * min(number, counts[amount])
        number -= counts[amount]
    return total


def _itself(amount: int) -> int:
    return amount
