"""Cards for all pods that are on their way to one node, at once.

The gate lets them in one after the other, each beside those before it; a search for all of them that is not told of this may run
out. So one arrangement of them is kept in mind, and what of it still holds is where the next one begins.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.mgpu.allocation import Doubt, any_placement, feasible
from core.mgpu.ask import MgpuAsk, Part
from core.mgpu.destination import Cards, all_placed, best_placed
from core.mgpu.filter import mismatch
from core.mgpu.node import Card, NodeModel, NodeState, after, idle_card
from core.mgpu.purse import Purse
from core.settings import MgpuSettings, Settings

Places = Mapping[str, Cards]
"""The UIDs of pods, and their cards."""

CROWD_BUDGET: Final = 1500
"""Search steps for one answer about all that are on their way to a node: 12 ms, and as much again for what needs none where they are 250."""
_REARRANGED: Final = 3
"""How often all are arranged anew because the next one has no room beside them; each time is a search."""
_ASKING: Final = ""
"""The UID of nobody, for the one that looks for room."""


@dataclass(frozen=True, slots=True)
class OnTheWay:
    """The pods for whom room is booked on one node and who have none there, by UID, in the order in which they were led there.

    `yielding` are those of them that give way to the pod that is bound; `places` is where all had room when it was asked last.
    """

    asks: Mapping[str, MgpuAsk] = field(default_factory=dict)
    yielding: frozenset[str] = frozenset()
    places: Places = field(default_factory=dict)

    def served_by(self, model: NodeModel) -> "OnTheWay":
        """Those of them that the node can serve, whatever is on it."""
        asks = {uid: ask for uid, ask in self.asks.items() if mismatch(ask, model) is None}
        return OnTheWay(asks, self.yielding, self.places)

    def unyielding(self) -> "OnTheWay":
        """Those of them that give way to nobody."""
        asks = {uid: ask for uid, ask in self.asks.items() if uid not in self.yielding}
        return OnTheWay(asks, frozenset(), self.places)

    def without(self, uids: Container[str]) -> "OnTheWay":
        """Those of them who are none of these."""
        asks = {uid: ask for uid, ask in self.asks.items() if uid not in uids}
        return OnTheWay(asks, self.yielding, self.places)

    def others(self, uid: str) -> dict[str, MgpuAsk]:
        """All but this one."""
        return {other: ask for other, ask in self.asks.items() if other != uid}


def places_for_all(
    uid: str,
    ask: MgpuAsk,
    wanted: Cards,
    expected: OnTheWay,
    model: NodeModel,
    state: NodeState,
    settings: MgpuSettings,
    purse: Purse,
) -> Places | None:
    """Cards for a pod and the others that are expected: the ones that it wants if they leave room, else some that do.

    What is kept of a former answer mostly needs no search: it comes first beside what the pod wants, and where the searches run out
    with cards for all of them, the pod as well.
    """
    others, cap = expected.others(uid), settings.max_containers_per_card
    left = after(state, model, ask, wanted)
    beside = arranged(others, model, left, cap=cap, places=expected.places, purse=Purse(0))
    if beside is not None:
        return {uid: wanted, **beside}
    with purse.kept_for(1):
        theirs = all_placed([*others.values()], model, left, cap=cap, purse=purse)
    if not isinstance(theirs, Doubt):
        return {uid: wanted, **dict(zip(others, theirs, strict=True))}
    with purse.kept_for(1):
        best = best_placed([ask, *others.values()], model, state, settings, purse)
    if best is Doubt.NO_ROOM:
        return None
    if best is Doubt.UNDECIDED:
        return _kept_or_replayed({**expected.asks, uid: ask}, expected.places, model, state, cap, purse)
    return dict(zip((uid, *others), best, strict=True))


def left_beside(
    ask: MgpuAsk, others: OnTheWay, model: NodeModel, state: NodeState, settings: Settings
) -> NodeState:
    """What the others leave of the node for a pod, arranged so that it has room there as well if that can be found.

    Who cannot be served there, and all of them where there is no room for them at once, keep nobody out, see `shares.decide`.
    """
    cap, purse = settings.mgpu.max_containers_per_card, Purse(CROWD_BUDGET)
    if not others.asks or mismatch(ask, model) is not None:
        return state
    if not feasible(ask, model, state, cap=cap, purse=purse):
        return state
    served = others.served_by(model).asks
    with purse.kept_for(1):
        places = found_for_all(served, others.places, model, state, cap=cap, purse=purse)
    if places is None:
        return state
    left = with_all(state, model, served, places)
    with purse.kept_for(1):
        beside = feasible(ask, model, left, cap=cap, purse=purse)
    if beside:
        return left
    anew = found_for_all({**served, _ASKING: ask}, others.places, model, state, cap=cap, purse=purse)
    return left if anew is None else with_all(state, model, served, anew)


def found_for_all(
    asks: Mapping[str, MgpuAsk], places: Places, model: NodeModel, state: NodeState, *, cap: int, purse: Purse
) -> Places | None:
    """Cards for all these pods by what is kept of a former answer, else by one search, else as the gate placed them.

    Where the search has proved that there are none nothing else is tried.
    """
    kept = arranged(asks, model, state, cap=cap, places=places, purse=Purse(0)) if places else None
    if kept is not None:
        return kept
    with purse.kept_for(1):
        searched = all_placed([*asks.values()], model, state, cap=cap, purse=purse)
    if searched is Doubt.NO_ROOM:
        return None
    if searched is Doubt.UNDECIDED:
        return _kept_or_replayed(asks, places, model, state, cap, purse)
    return dict(zip(asks, searched, strict=True))


def _kept_or_replayed(
    asks: Mapping[str, MgpuAsk], places: Places, model: NodeModel, state: NodeState, cap: int, purse: Purse
) -> Places | None:
    """The same where the search for all of them has run out already."""
    found = None
    if places:
        with purse.kept_for(1):
            found = arranged(asks, model, state, cap=cap, places=places, purse=purse)
    return found or arranged(asks, model, state, cap=cap, places={}, purse=purse)


def arranged(
    asks: Mapping[str, MgpuAsk],
    model: NodeModel,
    state: NodeState,
    *,
    cap: int,
    places: Places,
    purse: Purse | None = None,
) -> Places | None:
    """Cards for all these pods: the kept ones for those who still have room there, then the others one after the other.

    Without kept places that is how the gate places them. None where it leads nowhere; another arrangement may exist.
    """
    purse = purse or Purse(CROWD_BUDGET)
    found, now = _still_there(asks, model, state, cap, places)
    rearranged = 0
    for uid, ask in asks.items():
        if uid in found:
            continue
        cards = any_placement(ask, model, now, cap=cap, purse=purse)
        if cards is not None:
            found[uid] = cards
            now = after(now, model, ask, cards)
            continue
        if rearranged == _REARRANGED:
            return None
        rearranged += 1
        found[uid] = {}
        anew = all_placed([asks[each] for each in found], model, state, cap=cap, purse=purse)
        if isinstance(anew, Doubt):
            return None
        found = dict(zip(found, anew, strict=True))
        now = with_all(state, model, asks, found)
    return found


def _still_there(
    asks: Mapping[str, MgpuAsk], model: NodeModel, state: NodeState, cap: int, places: Places
) -> tuple[dict[str, Cards], NodeState]:
    """Those whose kept cards take them, all at once, and what they leave."""
    found = dict[str, Cards]()
    for uid, ask in asks.items():
        cards = places.get(uid)
        if cards is not None and _have_room(ask, cards, model, state, cap):
            found[uid] = cards
            state = after(state, model, ask, cards)
    return found, state


def _have_room(ask: MgpuAsk, cards: Cards, model: NodeModel, state: NodeState, cap: int) -> bool:
    """Whether these cards take the pod: it may have changed since, or the node."""
    left = list(state.cards)
    for part in ask.parts:
        numbers = cards.get(part.container, ())
        if len(numbers) != part.cards:
            return False
        for number in numbers:
            if number >= len(left) or not _takes(left[number], part, model, cap):
                return False
            card = left[number]
            memory = model.memory if part.memory is None else part.memory
            left[number] = Card(card.core - part.core, card.memory - memory, card.instances + 1)
    return True


def _takes(card: Card, part: Part, model: NodeModel, cap: int) -> bool:
    if part.memory is None:
        return card == idle_card(model)
    return card.core >= part.core and card.memory >= part.memory and card.instances < cap


def with_all(state: NodeState, model: NodeModel, asks: Mapping[str, MgpuAsk], places: Places) -> NodeState:
    """The state with all these pods at their places."""
    for uid, ask in asks.items():
        if uid in places:
            state = after(state, model, ask, places[uid])
    return state
