"""Whether a node can serve a pod, why not, and how much it is preferred."""

from fractions import Fraction
from typing import Final

from core import names, reasons
from core.mgpu.allocation import SCORE_BUDGET, Policy, allocate, feasible, node_score
from core.mgpu.ask import NATIVE_BURST_SHARE, MgpuAsk, Part
from core.mgpu.kept import kept
from core.mgpu.node import NODE_TYPE, NodeModel, NodeState, canonical, idle_state
from core.mgpu.purse import Purse
from core.mgpu.totals import excess, free, idle
from core.refusal import Refusal
from core.settings import Settings
from core.violations import show

REFUSAL_BUDGET: Final = 1000
"""Search steps for what is said where there is no room: who has none, and whether there would be on idle cards."""
NOT_EVEN_IDLE: Final = ", not even on idle cards"
# Where a search ended by its budget nothing is proved.
_CUT_SHORT: Final = ", as far as a search that was cut short can tell"
_IDLE_CUT_SHORT: Final = "; the search for some on idle cards was cut short"
# The ways out for shares that no node could hold, whoever is there: waiting for room is in vain.
NO_NODE: Final = "add a node that serves them, or mend the labels and the device plugin of one that should"
"""Where none serves any."""
WAYS: Final = {
    reasons.MGPU_NO_ROOM: "ask for less, or add a node whose cards have room for it",
    reasons.MGPU_TOO_FEW_CARDS: "ask for fewer cards in one container, or add a node that has as many",
    reasons.MGPU_POLICY_MISMATCH: "name the compute policy of a node that there is, or add a node of this one",
}
"""By why it is that the node that comes closest could not."""


def fits(ask: MgpuAsk, model: NodeModel, state: NodeState, settings: Settings) -> Refusal | None:
    """None when the node has room for the whole pod; else the first reason why not. Books nothing."""
    return mismatch(ask, model) or shortage(ask, model, state, settings)


def mismatch(ask: MgpuAsk, model: NodeModel) -> Refusal | None:
    """What about the node rules the pod out whatever runs on it: its type, its policy, its number of cards."""
    if not model.serves:
        return Refusal(reasons.MGPU_NODE_TYPE, _type_message(model), unresolvable=True)
    if ask.multi and not ask.policy == model.policy == NATIVE_BURST_SHARE:
        message = f"{_policies(ask, model)}; with container-multiple-gpu both must be {NATIVE_BURST_SHARE}"
        return Refusal(reasons.MGPU_POLICY_MISMATCH, message, unresolvable=True)
    if not ask.any_policy and ask.policy != model.policy:
        return Refusal(reasons.MGPU_POLICY_MISMATCH, _policies(ask, model), unresolvable=True)
    for part in ask.parts:
        if part.cards > model.cards:
            message = f"container {show(part.container)} asks for {part.cards} cards, node has {model.cards}"
            return Refusal(reasons.MGPU_TOO_FEW_CARDS, message, unresolvable=True)
    return None


def shortage(ask: MgpuAsk, model: NodeModel, state: NodeState, settings: Settings) -> Refusal | None:
    """Whether the containers together have no room on the cards as they are."""
    cap = settings.mgpu.max_containers_per_card
    return _more_than_all(ask, model, cap) or _shortage(ask, model, canonical(state), cap)


def in_words(
    ask: MgpuAsk, model: NodeModel, state: NodeState, settings: Settings, room: bool | None, purse: Purse
) -> Refusal:
    """The same where no room was found: by what is left in the purse of who looked for it; `room` is None if it was not enough."""
    cap = settings.mgpu.max_containers_per_card
    return _more_than_all(ask, model, cap) or _refusal(ask, model, canonical(state), cap, room, purse)


def preference(ask: MgpuAsk, model: NodeModel, state: NodeState, settings: Settings) -> Fraction:
    """The node's score for the pod, 0..100, exact; 0 for a node that does not fit."""
    if mismatch(ask, model) is not None:
        return Fraction(0)
    mgpu = settings.mgpu
    return _preference(
        ask, model, canonical(state), mgpu.policy, mgpu.weight_of_core, mgpu.max_containers_per_card
    )


def _more_than_all(ask: MgpuAsk, model: NodeModel, cap: int) -> Refusal | None:
    """Of a pod that asks for more than all cards of the node have: whoever is there, and without a search."""
    over = excess(ask.parts, idle(model, cap), model, cap)
    if over is None:
        return None
    message = f"{_no_room_for(ask.parts[over.position])}{NOT_EVEN_IDLE}"
    if over.position:
        message += f"; with those before it that makes {over}"
    return Refusal(reasons.MGPU_NO_ROOM, message, unresolvable=True)


def _containers(ask: MgpuAsk) -> int:
    return len(ask.parts)


@kept(_containers)
def _shortage(ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int) -> Refusal | None:
    room = feasible(ask, model, state, cap=cap)
    return None if room else _refusal(ask, model, state, cap, room, Purse(REFUSAL_BUDGET))


def _refusal(
    ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int, room: bool | None, purse: Purse
) -> Refusal:
    with purse.kept_for(1):
        message = _no_room_for(_first_without_room(ask, model, state, cap, purse))
    idle_cards = idle_state(model)
    on_idle = room if state == idle_cards else feasible(ask, model, idle_cards, cap=cap, purse=purse)
    if on_idle is False:
        return Refusal(reasons.MGPU_NO_ROOM, message + NOT_EVEN_IDLE, unresolvable=True)
    if room is None:
        return Refusal(reasons.MGPU_NO_ROOM, message + _CUT_SHORT, cut_short=True)
    return Refusal(reasons.MGPU_NO_ROOM, message if on_idle else message + _IDLE_CUT_SHORT)


@kept(_containers)
def _preference(
    ask: MgpuAsk, model: NodeModel, state: NodeState, policy: Policy, weight: int, cap: int
) -> Fraction:
    placement = allocate(ask, model, state, policy=policy, weight=weight, cap=cap, budget=SCORE_BUDGET)
    if placement is None:
        return Fraction(0)
    return node_score(ask, model, state, placement.indexes, policy=policy, weight=weight)


def _first_without_room(ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int, purse: Purse) -> Part:
    """The first container that cannot be placed together with those before it, as far as the searches for them go."""
    over = excess(ask.parts, free(state.cards, cap), model, cap)
    fitting, failing = 0, len(ask.parts) if over is None else over.position + 1
    # Where the sums say which one it is, it mostly is; one search for those before it shows that.
    middle = failing // 2 if over is None else over.position
    while failing - fitting > 1 and purse.left:
        head = MgpuAsk(ask.parts[:middle], ask.multi, ask.policy)
        if feasible(head, model, state, cap=cap, budget=SCORE_BUDGET, purse=purse):
            fitting = middle
        else:
            failing = middle
        middle = (fitting + failing) // 2
    return ask.parts[failing - 1]


def _no_room_for(part: Part) -> str:
    return f"not enough mGPU: no room for {_wish(part)}"


def _wish(part: Part) -> str:
    if part.memory is None:
        return f"container {show(part.container)}, which asks for {_cards(part.cards)} whole"
    each = "" if part.cards == 1 else " each"
    wish = f"mgpu-core {part.core} and mgpu-memory {part.memory}{each} on {_cards(part.cards)}"
    return f"container {show(part.container)}, which asks for {wish}"


def _cards(count: int) -> str:
    return "1 card" if count == 1 else f"{count} cards"


def _policies(ask: MgpuAsk, model: NodeModel) -> str:
    return f"compute policy of the pod is {show(ask.policy)}, of the node {show(model.policy)}"


def _type_message(model: NodeModel) -> str:
    if model.kind != NODE_TYPE:
        label = show(model.kind) if model.kind else "not set"
        return f"node type: the label {names.MGPU_NODE_TYPE_LABEL} is {label}, not {show(NODE_TYPE)}"
    return "node type: the node reports no mGPU cards"
