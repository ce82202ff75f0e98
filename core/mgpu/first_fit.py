"""The quick answer to whether a pod has room on a node: right when it says yes, and when it says no.

Most nodes are clear cases, and the filter looks at thousands of them; the search is for the rest.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from core.mgpu.ask import MgpuAsk, Part
from core.mgpu.node import Card, NodeModel, NodeState


class Doubt(Enum):
    """Why there is no arrangement."""

    NO_ROOM = auto()
    """There is none: some container would not even find its cards if it were alone."""
    UNDECIDED = auto()
    """Taking the first cards that fit led nowhere; another choice may."""


def first_fit(
    ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int
) -> Mapping[int, tuple[int, ...]] | Doubt:
    """Position of the container in the ask -> its cards, ascending.

    Whole cards are the lowest idle ones; then the shared containers, the largest first, each on the fullest cards
    that take it.
    """
    idle = state.idle(model)
    whole = sum(part.cards for part in ask.parts if part.full)
    if whole > len(idle):
        return Doubt.NO_ROOM
    taken = set(idle[:whole])
    cards = sorted((card, number) for number, card in enumerate(state.cards) if number not in taken)
    shared = ((part.core, part.memory, part.cards) for part in ask.parts if part.memory is not None)
    if not all(_places(*part, cards, cap) for part in shared):
        return Doubt.NO_ROOM
    arrangement: dict[int, tuple[int, ...]] = {}
    next_whole = 0
    for position, part in sorted(enumerate(ask.parts), key=lambda entry: _size(entry[1]), reverse=True):
        if part.memory is None:
            arrangement[position] = tuple(idle[next_whole : next_whole + part.cards])
            next_whole += part.cards
            continue
        places = _places(part.core, part.memory, part.cards, cards, cap)
        if not places:
            return Doubt.UNDECIDED
        arrangement[position] = tuple(sorted(cards[place][1] for place in places))
        for place in places:
            card, number = cards[place]
            left = Card(card.core - part.core, card.memory - part.memory, card.instances + 1)
            cards[place] = left, number
    return arrangement


def _places(core: int, memory: int, count: int, cards: Sequence[tuple[Card, int]], cap: int) -> list[int]:
    """Where the first cards are that take a shared container, as many as it wants; none where there are too few."""
    places = []
    for place, (card, _) in enumerate(cards):
        if card.core >= core and card.memory >= memory and card.instances < cap:
            places.append(place)
            if len(places) == count:
                return places
    return []


def _size(part: Part) -> tuple[int, int, int]:
    return part.core, part.memory or 0, part.cards
