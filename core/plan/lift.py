"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from core import names, reasons
from core.cards.assigned import render_assigned
from core.objects import Pod
from core.plan.affinity import Patch
from core.plan.patch import lift_patch
from core.plan.placement import CardPlacement, share_requirement
from core.plan.room import ShareRoom
from core.plan.stock import CardStock
from core.queues.check import Balance, Shortfall
from core.queues.ledger import Entry, Ledger


@dataclass(frozen=True, slots=True)
class Lift:
    """A pod that gets its quota now. `assigned` counts whole cards."""

    pod: Pod
    queue: str
    assigned: Mapping[str, int]
    patch: Patch


@dataclass(frozen=True, slots=True)
class Hold:
    """A pod that stays gated; `announced` says whether its owner is told by an event."""

    pod: Pod
    queue: str
    reason: str
    message: str
    announced: bool = True


Decision = Lift | Hold


def share_of(ledger: Ledger, queue: str) -> float:
    """The largest part of any limit that is allocated or reserved; for ordering and display only."""
    limits, account = ledger.limits.get(queue), ledger.accounts.get(queue)
    if limits is None or account is None:
        return 0.0
    bounds = [*limits.cards.items(), *limits.shares.items()]
    return max((account.used(key) / limit for key, limit in bounds if limit > 0), default=0.0)


class Planner:
    """Decides on waiting pods, one queue at a time, against the ledger as it is at that moment."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._room = ShareRoom(ledger)
        self._placement = CardPlacement(ledger)

    def order(self, queues: Iterable[str]) -> list[str]:
        """The order in which queues are served: priority, then the smaller share of a limit in use, then name."""
        return sorted(queues, key=self._rank)

    def _rank(self, name: str) -> tuple[int, float, str]:
        queue = self._ledger.queues.get(name)
        return (-queue.priority if queue else 0, share_of(self._ledger, name), name)

    def decide(self, name: str) -> list[Decision]:
        """Decides on every waiting pod of a queue, in their order. What is lifted is assumed in the ledger."""
        queue = self._ledger.queues.get(name)
        fifo = queue is not None and queue.fifo
        head: Hold | None = None
        stock = CardStock(self._ledger)
        decisions: list[Decision] = []
        for entry in self._ledger.waiting(name):
            decision = _behind(entry, head) if head is not None else self._decide(entry, stock)
            decisions.append(decision)
            if fifo and isinstance(decision, Hold) and head is None:
                head = decision
        return decisions

    def _decide(self, entry: Entry, stock: CardStock) -> Decision:
        pod, name, demand = entry.pod, entry.queue, entry.demand
        if not pod.asks:
            # Gated by hand, or the card name was taken away while it waited.
            return self._lift(entry, None)
        obstacle = self._closed(entry)
        if obstacle is not None:
            return obstacle
        if demand.problem:
            text = f"Get request resource failed, Queue <{name}>, error: {demand.problem}"
            return Hold(pod, name, reasons.GET_TASK_REQUEST_RESOURCE_FAILED, text)
        limits = self._ledger.limits.get(name)
        balance = Balance(name, limits, partial(self._ledger.used, name)) if limits is not None else None
        card = self._choose(entry, balance, stock)
        shortfall = card if isinstance(card, Shortfall) else None
        if shortfall is None and balance is not None:
            shortfall = balance.share_shortfall(demand.shares)
        if shortfall is None and demand.mgpu is not None:
            shortfall = self._room.shortfall(pod, demand.mgpu, name)
        if shortfall is not None:
            if shortfall.reason == reasons.NO_FREE_CARD:
                self._ledger.wants_room.add(name)
            return Hold(pod, name, shortfall.reason, shortfall.message)
        return self._lift(entry, None if isinstance(card, Shortfall) else card)

    def _closed(self, entry: Entry) -> Hold | None:
        """Why the queue as a whole takes nobody in, None when it does.

        A missing default queue is no obstacle for a pod that nothing sent there and that needs no card quota.
        """
        queue = self._ledger.queues.get(entry.queue)
        if queue is None:
            if not entry.attribution.named and not entry.pod.card_name:
                return None
            text = f"Queue <{entry.queue}> does not exist; the pod waits until it is created"
            return Hold(entry.pod, entry.queue, reasons.QUEUE_NOT_FOUND, text)
        if not queue.open:
            text = f"Queue <{entry.queue}> is {queue.state}; it takes in no pods"
            return Hold(entry.pod, entry.queue, reasons.QUEUE_NOT_OPEN, text, announced=False)
        return None

    def _choose(self, entry: Entry, balance: Balance | None, stock: CardStock) -> str | Shortfall | None:
        """The card to assign, None for a pod without cards, or why no card can be assigned.

        The choice among alternatives cannot be taken back once the gate is gone, so it waits for free cards; a pod
        with a single card does not, its waiting for a node is the scheduler's business.
        """
        pod, asked = entry.pod, entry.demand.card
        if asked is None or balance is None:
            return None
        shortfall = balance.choice_shortfall(asked)
        if shortfall is not None:
            return shortfall
        if len(asked.alternatives) == 1:
            return asked.alternatives[0]
        nodes = {card: stock.admitted_nodes(pod, card) for card in asked.alternatives}
        if not any(nodes.values()) and any(
            self._ledger.inventory.nodes_with(card) for card in asked.alternatives
        ):
            text = f"Queue <{balance.queue}>: the pod's node affinity excludes every node of <{asked.expression}>"
            return Shortfall(reasons.AFFINITY_EXCLUDES_CARDS, text)
        for card in asked.alternatives:
            fits = balance.card_shortfall(card, asked.milli) is None
            if fits and stock.available(nodes[card], card, asked.milli):
                return card
        text = (
            f"Queue <{balance.queue}> has quota, but no node has <{asked.milli}> of <{asked.expression}> free"
        )
        return Shortfall(reasons.NO_FREE_CARD, text)

    def _lift(self, entry: Entry, card: str | None) -> Lift:
        pod, demand = entry.pod, entry.demand
        assigned = {card: demand.card.milli // 1000} if card is not None and demand.card is not None else {}
        record = {names.ASSIGNED_ANNOTATION: render_assigned(assigned)} if assigned else {}
        self._ledger.assume(
            replace(
                pod,
                gates=tuple(gate for gate in pod.gates if gate != names.GATE),
                annotations={**pod.annotations, **record},
            )
        )
        cards = self._placement.expressions(card) if card is not None else ()
        return Lift(
            pod, entry.queue, assigned, lift_patch(pod, cards, share_requirement(demand.mgpu), record)
        )


def _behind(entry: Entry, head: Hold) -> Hold:
    text = f"Queue <{entry.queue}> is first in, first out: behind {head.pod.key}, which waits: {head.message}"
    return Hold(entry.pod, entry.queue, head.reason, text, announced=False)
