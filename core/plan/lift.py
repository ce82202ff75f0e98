"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from core import names, reasons
from core.affinity import NodeRequirement, Patch
from core.cards.assigned import render_assigned
from core.mgpu.affinity import node_requirement
from core.objects import Group, Pod
from core.plan.gang import assign
from core.plan.patch import lift_patch
from core.plan.placement import CardPlacement
from core.plan.room import ShareRoom
from core.plan.stock import CardStock
from core.plan.trial import LedgerTrial, member_of
from core.plan.units import Unit, units_of
from core.queues.account import Entry
from core.queues.check import Balance, Shortfall
from core.queues.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Lift:
    """A pod that gets its quota now.

    `assigned` counts whole cards, `record` is the annotation about them, `requirement` narrows the pod to nodes that
    have them.
    """

    pod: Pod
    queue: str
    assigned: Mapping[str, int]
    record: str
    requirement: NodeRequirement

    @property
    def patch(self) -> Patch:
        """The write that lifts the pod; built when it is asked for, so that a pass over thousands stays short."""
        return lift_patch(self.pod, self.requirement, self.record)


@dataclass(frozen=True, slots=True)
class Hold:
    """A pod that stays gated; `announced` says whether its owner is told by an event.

    `group` is the PodGroup that waits as a whole, where that is why.
    """

    pod: Pod
    queue: str
    reason: str
    message: str
    announced: bool = True
    group: Group | None = None


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
        self._stock = CardStock(ledger)

    def order(self, queues: Iterable[str]) -> list[str]:
        """The order in which queues are served: priority, then the smaller share of a limit in use, then name."""
        return sorted(queues, key=self._rank)

    def _rank(self, name: str) -> tuple[int, float, str]:
        queue = self._ledger.queues.get(name)
        return (-queue.priority if queue else 0, share_of(self._ledger, name), name)

    def decide(self, name: str) -> list[Decision]:
        """Decides on every waiting pod of a queue, in their order. What is lifted is assumed in the ledger."""
        ledger = self._ledger
        queue, limits = ledger.queues.get(name), ledger.limits.get(name)
        fifo = queue is not None and queue.fifo
        balance = Balance(name, limits, partial(ledger.used, name)) if limits is not None else None
        head: Hold | None = None
        told: dict[tuple[str, int], Hold] = {}
        decisions: list[Decision] = []
        for unit in units_of(ledger, name):
            waiting = unit.entries
            if head is None and unit.lacks_members:
                together = self._gang(unit, balance)
                decisions += together
                told.clear()
                decided = {decision.pod.uid for decision in together}
                waiting = [entry for entry in unit.entries if entry.pod.uid not in decided]
                head = _head(together) if fifo else None
            for entry in waiting:
                decision = self._decide_alike(entry, balance, told) if head is None else _behind(entry, head)
                decisions.append(decision)
                if fifo and head is None:
                    head = _head([decision])
        return decisions

    def _gang(self, unit: Unit, balance: Balance | None) -> list[Decision]:
        """Lifts as many members as the group lacks, all at once, or holds every one of them.

        Members beyond that number are left to be decided on one by one.
        """
        group, progress = unit.group, unit.progress
        assert group is not None
        assert progress is not None
        obstacles = {entry.pod.uid: self._obstacle(entry) for entry in unit.entries}
        held = [hold for hold in obstacles.values() if hold is not None]
        ready = [entry for entry in unit.entries if obstacles[entry.pod.uid] is None]
        wanted = max(progress.missing, sum(progress.missing_tasks.values()))
        if not progress.possible or len(ready) < wanted:
            text = (
                f"Queue <{unit.queue}>: PodGroup {group.key} needs {wanted} more members at once, and {len(ready)} can "
                "be lifted"
            )
            return [*held, *_hold_all(ready, group, Shortfall(reasons.GANG_INCOMPLETE, text))]
        marks = self._ledger.marks()
        trial = LedgerTrial(self._ledger, ready, partial(self._shortfall, balance), self._lift_with)
        outcome = assign([member_of(entry) for entry in ready], wanted, progress.missing_tasks, trial)
        self._ledger.reset_marks(marks)
        if outcome.chosen:
            self._ledger.touched.add(unit.queue)
            return [*held, *(trial.lifts[each.member.uid] for each in outcome.chosen)]
        shortfall = trial.shortfall or Shortfall(
            reasons.GANG_INCOMPLETE, f"Queue <{unit.queue}> has no place"
        )
        if shortfall.reason == reasons.NO_FREE_CARD:
            self._ledger.wants_room.add(unit.queue)
        most = "the search was given up" if outcome.exhausted else f"{trial.most} fit"
        text = f"{shortfall.message}; PodGroup {group.key} needs {wanted} more members at once, {most}"
        return [*held, *_hold_all(ready, group, Shortfall(shortfall.reason, text))]

    def _shortfall(self, balance: Balance | None, entry: Entry, card: str) -> Shortfall | None:
        """Why a member cannot have this card now."""
        asked = entry.demand.card
        if asked is not None and balance is not None:
            shortfall = balance.card_shortfall(card, asked.milli)
            if shortfall is None and len(asked.alternatives) > 1:
                nodes = self._stock.admitted_nodes(entry.pod, card)
                if not self._stock.available(nodes, card, asked.milli):
                    text = (
                        f"Queue <{balance.queue}> has quota, but no node has <{asked.milli}> of <{card}> free"
                    )
                    shortfall = Shortfall(reasons.NO_FREE_CARD, text)
            if shortfall is not None:
                return shortfall
        return self._share_shortfall(entry, balance)

    def _decide_alike(
        self, entry: Entry, balance: Balance | None, told: dict[tuple[str, int], Hold]
    ) -> Decision:
        """Pods that ask for the same are held for the same reason until a lift changes what is left."""
        wish = _wish(entry)
        known = told.get(wish) if wish is not None else None
        if known is not None:
            return Hold(entry.pod, known.queue, known.reason, known.message, known.announced)
        decision = self._decide(entry, balance)
        if isinstance(decision, Lift):
            told.clear()
        elif wish is not None:
            told[wish] = decision
        return decision

    def _decide(self, entry: Entry, balance: Balance | None) -> Decision:
        pod, name = entry.pod, entry.queue
        if not pod.asks:
            # Gated by hand, or the card name was taken away while it waited.
            return self._lift(entry, None)
        obstacle = self._obstacle(entry)
        if obstacle is not None:
            return obstacle
        card = self._choose(entry, balance)
        shortfall = card if isinstance(card, Shortfall) else self._share_shortfall(entry, balance)
        if shortfall is None:
            return self._lift(entry, None if isinstance(card, Shortfall) else card)
        if shortfall.reason == reasons.NO_FREE_CARD:
            self._ledger.wants_room.add(name)
        return Hold(pod, name, shortfall.reason, shortfall.message)

    def _share_shortfall(self, entry: Entry, balance: Balance | None) -> Shortfall | None:
        """Why the pod's mGPU shares cannot be had now: the queue's limits first, then room on the nodes."""
        demand = entry.demand
        shortfall = balance.share_shortfall(demand.shares) if balance is not None else None
        if shortfall is None and demand.mgpu is not None:
            shortfall = self._room.shortfall(entry.pod, demand.mgpu, entry.queue)
        return shortfall

    def _obstacle(self, entry: Entry) -> Hold | None:
        """Why the pod cannot be lifted however much is left, None when it can."""
        closed = self._closed(entry)
        if closed is not None or not entry.demand.problem:
            return closed
        text = f"Get request resource failed, Queue <{entry.queue}>, error: {entry.demand.problem}"
        return Hold(entry.pod, entry.queue, reasons.GET_TASK_REQUEST_RESOURCE_FAILED, text)

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

    def _choose(self, entry: Entry, balance: Balance | None) -> str | Shortfall | None:
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
        nodes = {card: self._stock.admitted_nodes(pod, card) for card in asked.alternatives}
        if not any(nodes.values()) and any(
            self._ledger.inventory.nodes_with(card) for card in asked.alternatives
        ):
            text = f"Queue <{balance.queue}>: the pod's node affinity excludes every node of <{asked.expression}>"
            return Shortfall(reasons.AFFINITY_EXCLUDES_CARDS, text)
        for card in asked.alternatives:
            fits = balance.card_shortfall(card, asked.milli) is None
            if fits and self._stock.available(nodes[card], card, asked.milli):
                return card
        text = (
            f"Queue <{balance.queue}> has quota, but no node has <{asked.milli}> of <{asked.expression}> free"
        )
        return Shortfall(reasons.NO_FREE_CARD, text)

    def _lift_with(self, entry: Entry, card: str) -> Lift:
        return self._lift(entry, card or None)

    def _lift(self, entry: Entry, card: str | None) -> Lift:
        pod, asked = entry.pod, entry.demand.card
        assigned: dict[str, int] = {}
        record = ""
        if card is not None and asked is not None:
            count = asked.milli // 1000
            assigned[card] = count
            record = render_assigned(card, count)
        annotations = {**pod.annotations, names.ASSIGNED_ANNOTATION: record} if record else pod.annotations
        gates = tuple(gate for gate in pod.gates if gate != names.GATE)
        self._ledger.assume(replace(pod, gates=gates, annotations=annotations))
        return Lift(pod, entry.queue, assigned, record, self._requirement(entry, card))

    def _requirement(self, entry: Entry, card: str | None) -> NodeRequirement:
        of_card = NodeRequirement() if card is None else self._placement.requirement(card)
        share = entry.demand.mgpu
        return of_card if share is None else of_card & node_requirement(share)


def _hold_all(entries: Iterable[Entry], group: Group, why: Shortfall) -> Iterable[Hold]:
    return (Hold(entry.pod, entry.queue, why.reason, why.message, group=group) for entry in entries)


def _head(decisions: Iterable[Decision]) -> Hold | None:
    """The first pod that was held."""
    return next((decision for decision in decisions if isinstance(decision, Hold)), None)


def _behind(entry: Entry, head: Hold) -> Hold:
    text = f"Queue <{entry.queue}> is first in, first out: behind {head.pod.key}, which waits: {head.message}"
    return Hold(entry.pod, entry.queue, head.reason, text, announced=False)


def _wish(entry: Entry) -> tuple[str, int] | None:
    """What decides on a pod that wants cards and nothing else, on any node; None for all other pods."""
    pod, demand = entry.pod, entry.demand
    if demand.card is None or demand.mgpu is not None or demand.problem or pod.node_selector or pod.affinity:
        return None
    return demand.card.expression, demand.card.milli
