"""What no node that there is could ever hold, were it empty and open: waiting for it is in vain."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from core import reasons
from core.answers.room import Nodes, Seeker, cards_of, shape_of
from core.answers.words import amount
from core.cards.ask import CardAsk
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import NO_NODE, NOT_EVEN_IDLE, WAYS, fits
from core.mgpu.node import NodeModel, idle_state, model_of
from core.mgpu.pieces import in_steps
from core.objects.node_rules import ANYWHERE
from core.objects.taints import Tolerations
from core.plan.pools import CardPools
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import Pace, Steps, finish, first_of

_IN_A_STEP: Final = 250
"""Nodes that are looked at in half a millisecond."""
_CLOSEST: Final = (
    reasons.MGPU_NO_ROOM,
    reasons.MGPU_TOO_FEW_CARDS,
    reasons.MGPU_POLICY_MISMATCH,
)
"""Why a node does not do, of the one that comes closest first."""
_OTHERWISE: Final = "make the pod anew so that a node that there is would do, or add or change a node"


@dataclass(frozen=True, slots=True)
class Beyond:
    """That no node that there is could ever hold a pod: why, and what would help.

    `by_quota_alone`: whether it would be let in for nothing as soon as there is quota; else it waits for a node.
    """

    why: str
    remedy: str
    by_quota_alone: bool = True

    @property
    def remedy_before(self) -> str:
        """What would help a pod that is not let in yet."""
        return (
            f"{self.remedy}; let in now, the pod would find no node" if self.by_quota_alone else self.remedy
        )


class Reach:
    """What nodes could hold, were they empty and open. Each distinct ask is judged once.

    True for as long as no node changes.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._cards: dict[tuple[str, int], Beyond | None] = {}
        self._shares: dict[MgpuAsk, Beyond | None] = {}
        self._models: frozenset[NodeModel] | None = None
        self._pools = CardPools(ledger)

    def beyond(self, entry: Entry) -> Steps[Beyond | None]:
        """What is said where no node that there is could ever hold what a pod asks for; None where one could, and once it has one."""
        if entry.pod.bound:
            return None
        asked, shares = entry.demand.card, entry.demand.mgpu
        if asked is not None:
            ask = asked.expression, asked.milli
            if ask not in self._cards:
                self._cards[ask] = yield from self._of_cards(asked)
            if self._cards[ask] is not None:
                return self._cards[ask]
        if shares is None:
            return None
        if self._models is None:
            self._models = yield from _share_models(self._ledger)
        if shares not in self._shares:
            brought = yield from self._pools.may_bring_shares(ANYWHERE, shares)
            self._shares[shares] = None if brought else (yield from self._of_shares(shares, self._models))
        return self._shares[shares]

    def _of_cards(self, asked: CardAsk) -> Steps[Beyond | None]:
        """Of a card whose nodes have changed all of them are looked at: a step each."""
        inventory = self._ledger.inventory
        holding = yield from first_of(
            asked.alternatives, lambda card: inventory.could_hold(card, asked.milli), 1
        )
        if holding is not None:
            return None
        have, card = inventory.largest(asked.alternatives)
        wanted, most = amount(card, asked.milli), amount(card, have)
        if not have:
            return Beyond(f"no node has {asked.expression}", f"add a node that has {wanted}")
        which = "" if card == asked.expression else f" {card}"
        return Beyond(
            f"no node has {wanted} {asked.expression}: the largest has {most}{which}",
            f"ask for at most {most} {card} in one pod, or add a node that has {wanted}",
        )

    def _of_shares(self, asked: MgpuAsk, models: Iterable[NodeModel]) -> Steps[Beyond | None]:
        closest: Refusal | None = None
        for model in models:
            refusal = yield from in_steps(
                partial(fits, asked, model, idle_state(model), self._ledger.settings)
            )
            if refusal is None or not refusal.unresolvable:
                return None  # It could, or nobody knows: the search for room on its idle cards was cut short.
            closest = refusal if closest is None else min(closest, refusal, key=_distance)
            yield
        if closest is None:
            return Beyond("no node serves mGPU shares", NO_NODE, by_quota_alone=False)
        why = (
            f"no node could hold it, not even one without pods: {closest.message.replace(NOT_EVEN_IDLE, '')}"
        )
        return Beyond(why, WAYS[closest.code], by_quota_alone=False)


def _distance(refusal: Refusal) -> tuple[int, str]:
    return _CLOSEST.index(refusal.code), refusal.message


def _share_models(ledger: Ledger) -> Steps[frozenset[NodeModel]]:
    """What nodes that serve shares are like; nodes alike count once."""
    pace, found = Pace(_IN_A_STEP), set[NodeModel]()
    for name in tuple(ledger.nodes):
        if pace.due():
            yield
        node = ledger.nodes.get(name)
        if node is not None and (model := model_of(node)).serves:
            found.add(model)
    return frozenset(found)


class EmptyCluster:
    """The nodes as if nobody were on them and all took pods: cards and shares first, then whatever else a pod wants of its node.

    Each distinct ask is judged once. True for as long as no node changes.
    """

    def __init__(self, ledger: Ledger, tolerations: Mapping[str, Tolerations]) -> None:
        """`tolerations` of whoever has no node, by UID."""
        self._ledger = ledger
        self._tolerations = tolerations
        self._reach = Reach(ledger)
        self._nodes: Nodes | None = None
        self._judged: dict[Hashable, Beyond | None] = {}

    def beyond(self, entry: Entry) -> Beyond | None:
        """What is said where no node would ever take a pod; None where one would or a pool may bring one, and once it has one.

        Of a state without nodes nothing is known but that there are no cards; where it cannot be computed what a pod asks for, that
        is what it is told.
        """
        found = finish(self._reach.beyond(entry))
        if found is not None or entry.pod.bound or entry.demand.problem or not self._ledger.nodes:
            return found
        seeker = Seeker(entry.pod, cards_of(entry), self._tolerations.get(entry.pod.uid, ()))
        shape = shape_of(seeker)
        if shape not in self._judged:
            self._judged[shape] = self._of_nodes(seeker, by_quota_alone=entry.demand.mgpu is None)
        return self._judged[shape]

    def _of_nodes(self, seeker: Seeker, *, by_quota_alone: bool) -> Beyond | None:
        if self._nodes is None:
            self._nodes = Nodes(self._ledger, empty=True)
        if self._nodes.seat(seeker):
            return None
        seat = self._nodes.in_vain(seeker)
        if seat.pool:
            return None
        why = f"no node would take it, not even one without pods: {seat.problem.removesuffix(' left')}"
        return Beyond(why, _OTHERWISE, by_quota_alone)
