"""Which node has room for an mGPU pod, by what the nodes are now; else why the closest one has not."""

from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import Final

from core import reasons
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import NO_NODE, WAYS, fits
from core.mgpu.pieces import in_steps
from core.plan.by_ask import ByAsk
from core.plan.share_nodes import Kind, ShareNodes
from core.plan.wish import Wish
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import Pace, Steps

_CLOSENESS = (reasons.MGPU_NO_ROOM, reasons.MGPU_TOO_FEW_CARDS, reasons.MGPU_POLICY_MISMATCH)
"""Which node's reason is told: the one that comes closest to fitting."""

_LOOKED_AT_IN_A_STEP: Final = 100
"""Nodes whose CPU, memory and taints are compared."""
_JUDGED: Final = 300_000
"""Answers about kinds of nodes that are kept, a hundred bytes each: as many as large gangs come to that are tried in parts, each
member on each node, for what is forgotten meanwhile is found out again in each part."""
_ALIKE: Final = 1_000
"""Refusals that are kept once, however many answers they are."""


@lru_cache(_ALIKE)
def _one_of(unfit: Refusal | None) -> Refusal | None:
    """The first of equal ones: their texts are long."""
    return unfit


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Why no node has room; `node` is the one that comes closest, where one lacks nothing but room on its cards.

    `way_out` is what is to be done where no open node could hold the pod, whoever is there.
    """

    why: str
    node: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The node that was found for a wish while the ledger was in this state; empty where there is none, and why."""

    wish: Wish
    changes: int
    node: str
    refusal: NoRoom | None = None
    displaces: bool = False


class ShareSearch:
    """A search costs as much as there are kinds of nodes, and then nodes of a kind that fits; where they stand is found out by others."""

    def __init__(self, ledger: Ledger, nodes: ShareNodes) -> None:
        self._ledger = ledger
        self._nodes = nodes
        self._judged: ByAsk[Kind, Refusal | None] = ByAsk(_JUDGED)
        self._looked_at = Pace(_LOOKED_AT_IN_A_STEP)

    def find(self, wish: Wish, admitted: Container[str]) -> Steps[Found]:
        """The node that is to take the pod; else why there is none.

        One on which a scheduler has to end pods of a lower priority first is better than none, if it does that for this pod.
        Room is booked for a pod on no second node: it is charged once.
        """
        judged = yield from self._judge(wish.ask)
        changes, instead, closest, why = self._ledger.changes, "", "", ""
        for kind in self._in_order(judged):
            for name in kind.nodes:
                if not self._may_take(name, wish, admitted):
                    continue
                if self._looked_at.due():
                    yield
                if not self._nodes.lack(name, wish, displacing=False):
                    return Found(wish, changes, name)
                if instead:
                    continue
                lack = self._nodes.lack(name, wish, displacing=True)
                if not lack:
                    instead = name
                elif not closest or name < closest:
                    # All of them are equally close: the first name is told.
                    closest, why = name, f"node {name} has room on its cards, but {lack}"
        if instead:
            return Found(wish, changes, instead, displaces=True)
        return Found(wish, changes, "", NoRoom(why) if why else self._closest(wish, judged, admitted))

    def _may_take(self, name: str, wish: Wish, admitted: Container[str]) -> bool:
        """Whether the pod may go to this node at all, were there room."""
        elsewhere = name not in admitted or (wish.within and name not in wish.within)
        return not elsewhere and not self._closed(name, wish)

    def _judge(self, ask: MgpuAsk) -> Steps[dict[Kind, Refusal | None]]:
        """Why the pod does not fit each kind of nodes, None where it does."""
        judged, kinds = self._judged.about(ask), self._nodes.kinds
        for kind in [kind for kind in kinds if kind not in judged]:
            unfit = yield from in_steps(partial(fits, ask, kind.model, kind.state, self._ledger.settings))
            self._judged.note(judged, kind, _one_of(unfit))
            yield
        if len(judged) > 2 * len(kinds):
            for kind in judged.keys() - set(kinds):
                del judged[kind]
        return judged

    def _in_order(self, judged: dict[Kind, Refusal | None]) -> list[Kind]:
        """The kinds of nodes that have room, as the policy prefers them."""
        spread = self._ledger.settings.mgpu.policy == "spread"
        fitting = [kind for kind in self._nodes.kinds if judged[kind] is None]
        return sorted(fitting, key=attrgetter("use"), reverse=not spread)

    def _closest(self, wish: Wish, judged: dict[Kind, Refusal | None], admitted: Container[str]) -> NoRoom:
        """Why no node has room on its cards. Of nodes that are equally close the first name is told."""
        if wish.within:
            on_the_way = "those of its task that start with it are on their way there"
            return NoRoom(f"node {', '.join(wish.within)} has none for it, and {on_the_way}")
        closest = ((True, len(_CLOSENESS)), "", "no node serves mGPU shares to this pod")
        way_out = f"{NO_NODE}; it has to take pods, and the pod's own rules have to admit it"
        for kind in self._nodes.kinds:
            unfit = judged[kind]
            if unfit is None:
                continue
            # Nearer than any other are nodes that would have room if others were gone.
            distance = unfit.unresolvable, _CLOSENESS.index(unfit.code)
            if distance > closest[0]:
                continue
            name = min((name for name in kind.nodes if name in admitted), default="")
            told = distance, name, f"node {name}: {unfit.message}"
            if name and told < closest:
                closest, way_out = told, WAYS[unfit.code]
        (in_vain, _), node, why = closest
        return NoRoom(why, way_out=way_out) if in_vain else NoRoom(why, node)

    def _closed(self, name: str, wish: Wish) -> bool:
        product = self._ledger.inventory.product_on(name) if wish.closed else None
        return product is not None and product.name in wish.closed
