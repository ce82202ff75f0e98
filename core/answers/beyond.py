"""What no node that there is could ever hold, were it empty and open: waiting for it is in vain."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.answers.words import amount
from core.cards.ask import CardAsk
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import NO_NODE, NOT_EVEN_IDLE, WAYS, fits
from core.mgpu.node import NodeModel, idle_state, model_of
from core.objects.node_rules import ANYWHERE
from core.plan.pools import CardPools
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import Pace, Steps, finish

_IN_A_STEP: Final = 500
"""Nodes that are looked at in half a millisecond."""
_CLOSEST: Final = (
    reasons.MGPU_NO_ROOM,
    reasons.MGPU_TOO_FEW_CARDS,
    reasons.MGPU_POLICY_MISMATCH,
)
"""Why a node does not do, of the one that comes closest first."""


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

    def beyond(self, entry: Entry) -> Beyond | None:
        """What is said where no node that there is could ever hold what a pod asks for; None where one could, and once it has one."""
        return finish(self.beyond_in_steps(entry))

    def beyond_in_steps(self, entry: Entry) -> Steps[Beyond | None]:
        """The same, with pauses."""
        if entry.pod.bound:
            return None
        asked, shares = entry.demand.card, entry.demand.mgpu
        if asked is not None:
            ask = asked.expression, asked.milli
            if ask not in self._cards:
                self._cards[ask] = self._of_cards(asked)
            if self._cards[ask] is not None:
                return self._cards[ask]
        if shares is None:
            return None
        if self._models is None:
            self._models = yield from _share_models(self._ledger)
        if shares not in self._shares:
            brought = yield from self._pools.may_bring_shares(ANYWHERE, shares)
            self._shares[shares] = None if brought else self._of_shares(shares, self._models)
        return self._shares[shares]

    def _of_cards(self, asked: CardAsk) -> Beyond | None:
        inventory = self._ledger.inventory
        if any(inventory.could_hold(card, asked.milli) for card in asked.alternatives):
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

    def _of_shares(self, asked: MgpuAsk, models: Iterable[NodeModel]) -> Beyond | None:
        against: list[Refusal] = []
        for model in models:
            refusal = fits(asked, model, idle_state(model), self._ledger.settings)
            if refusal is None:
                return None
            against.append(refusal)
        if not against:
            return Beyond("no node serves mGPU shares", NO_NODE, by_quota_alone=False)
        closest = min(against, key=lambda one: (_CLOSEST.index(one.code), one.message))
        why = (
            f"no node could hold it, not even one without pods: {closest.message.removesuffix(NOT_EVEN_IDLE)}"
        )
        return Beyond(why, WAYS[closest.code], by_quota_alone=False)


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
