"""From classes of equal cards back to card numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.mgpu.search import Choice
from core.mgpu.slots import Load, Slot


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal cards: their numbers, ascending. `idle` cards can be taken whole."""

    slot: Slot
    numbers: tuple[int, ...]
    idle: bool


@dataclass(slots=True)
class _Card:
    """A card of a pool whose number is still open, and the containers on it (by their position in the pod)."""

    pool: int
    containers: list[int] = field(default_factory=list)

    def order(self) -> tuple[int, ...]:
        """Sorts the cards of a pool so that the first containers come to the lowest numbers."""
        return (*sorted(self.containers), _LAST)


_LAST = 1 << 62


def number_cards(
    full: Mapping[int, int],
    shared: Sequence[tuple[int, Load]],
    choices: Sequence[Choice],
    pools: Sequence[Pool],
) -> dict[int, tuple[int, ...]]:
    """Container position -> card numbers, ascending.

    `full`: position -> number of whole cards; `shared` and `choices` are parallel. Cards of one pool are equal, and
    so are containers with equal loads; of all the ways to name them the one is taken that reads lowest, container by
    container.
    """
    cards = _replay(full, shared, choices, pools)
    alike = _alike(shared)
    positions = sorted([*full, *(position for position, _ in shared)])
    numbered = _numbered(cards, pools, positions)
    while True:
        exchange = _exchange(numbered, alike)
        if all(position == other for position, other in exchange.items()):
            return numbered
        for card in cards:
            card.containers = [exchange[position] for position in card.containers]
        numbered = _numbered(cards, pools, positions)


def _replay(
    full: Mapping[int, int],
    shared: Sequence[tuple[int, Load]],
    choices: Sequence[Choice],
    pools: Sequence[Pool],
) -> list[_Card]:
    """The cards that are used, with their containers."""
    whole = sum(full.values())
    limit = sum(load.cards for _, load in shared)
    at: dict[Slot, list[_Card]] = {}
    used: list[_Card] = []
    for number, pool in enumerate(pools):
        taken = whole if pool.idle else 0
        if pool.idle:
            used.extend(_Card(number, [position]) for position, count in full.items() for _ in range(count))
        spare = min(len(pool.numbers) - taken, limit)
        at.setdefault(pool.slot, []).extend(_Card(number) for _ in range(spare))
    for (position, load), choice in zip(shared, choices, strict=True):
        moved: list[tuple[Slot, list[_Card]]] = []
        for slot, count in choice:
            chosen, at[slot] = at[slot][:count], at[slot][count:]
            for card in chosen:
                if not card.containers:
                    used.append(card)
                card.containers.append(position)
            moved.append((load.left(slot), chosen))
        # A card takes one share of a container, so it comes back only when the container has all its cards.
        for slot, chosen in moved:
            at.setdefault(slot, []).extend(chosen)
    return used


def _numbered(
    cards: Iterable[_Card], pools: Sequence[Pool], positions: Iterable[int]
) -> dict[int, tuple[int, ...]]:
    """The lowest numbers of each pool to its cards, those of the first containers first."""
    result: dict[int, list[int]] = {position: [] for position in positions}
    groups: dict[int, list[_Card]] = {}
    for card in cards:
        groups.setdefault(card.pool, []).append(card)
    for pool, members in groups.items():
        members.sort(key=_Card.order)
        for card, number in zip(members, pools[pool].numbers, strict=False):
            for position in card.containers:
                result[position].append(number)
    return {position: tuple(sorted(numbers)) for position, numbers in result.items()}


def _alike(shared: Sequence[tuple[int, Load]]) -> list[list[int]]:
    """Positions of shared containers that can change places, ascending. Those with whole cards are in order anyway."""
    groups: dict[Load, list[int]] = {}
    for position, load in shared:
        groups.setdefault(load, []).append(position)
    return [sorted(group) for group in groups.values()]


def _exchange(numbered: Mapping[int, tuple[int, ...]], alike: Iterable[list[int]]) -> dict[int, int]:
    """Position -> the position of an equal container that takes its cards, so that lists ascend in each group."""
    exchange = {position: position for position in numbered}
    for group in alike:
        by_cards = sorted(group, key=lambda position: (numbered[position], position))
        exchange.update(zip(by_cards, group, strict=True))
    return exchange
