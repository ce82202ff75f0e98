"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from core import names, reasons
from core.affinity import NodeRequirement, Patch
from core.cards.assigned import render_assigned
from core.mgpu.affinity import node_requirement
from core.objects import Group, Pod
from core.plan.choice import Choice
from core.plan.declared import declared_shortfall
from core.plan.gang import Outcome, assign
from core.plan.patch import lift_patch
from core.plan.placement import CardPlacement
from core.plan.trial import LedgerTrial, member_of
from core.plan.uniform import choices, common_cards
from core.plan.units import Unit, has_unfinished, units_of
from core.queues.account import Entry
from core.queues.amounts import CPU, MEMORY
from core.queues.check import Balance, balance_of
from core.queues.ledger import Ledger
from core.queues.share import share_of
from core.queues.shortfall import queue_closed, queue_missing, uncountable
from core.shortfall import Shortfall


@dataclass(frozen=True, slots=True)
class Lift:
    """A pod that gets its quota now.

    `assigned` counts whole cards, `record` is the annotation about them, `requirement` narrows the pod to nodes that
    have them. `lifted` is the pod as it is booked from now on.
    """

    pod: Pod
    queue: str
    assigned: Mapping[str, int]
    record: str
    requirement: NodeRequirement
    lifted: Pod

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
_Wish = tuple[str, int, int, int]


class Planner:
    """Decides on waiting pods, one queue at a time, against the ledger as it is at that moment."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._choice = Choice(ledger)
        self._placement = CardPlacement(ledger)

    def order(self, queues: Iterable[str]) -> list[str]:
        """The order in which queues are served: priority, then the smaller share in use, then name.

        Before all others those with a gang that stopped short of its minimum: what it lacks on the nodes, or of what it
        shares with other queues, must not go to them.
        """
        return sorted(queues, key=self._rank)

    def _rank(self, name: str) -> tuple[bool, int, float, str]:
        queue = self._ledger.queues.get(name)
        share = share_of(self._ledger, name)
        return (not has_unfinished(self._ledger, name), -queue.priority if queue else 0, share, name)

    def decide(self, name: str) -> list[Decision]:
        """Decides on every waiting pod of a queue, in their order. What is lifted is assumed in the ledger."""
        queue, balance = self._ledger.queues.get(name), balance_of(self._ledger, name)
        fifo = queue is not None and queue.fifo
        head: Hold | None = None
        told: dict[_Wish, Hold] = {}
        decisions: list[Decision] = []
        for unit in units_of(self._ledger, name):
            waiting = unit.entries
            if head is None:
                together = self._together(unit, balance)
                if together:
                    told.clear()
                decisions += together
                decided = {decision.pod.uid for decision in together}
                waiting = [entry for entry in waiting if entry.pod.uid not in decided] if decided else waiting
                head = _head(together) if fifo else None
            common = common_cards(self._ledger, unit) if head is None else None
            for entry in waiting:
                decision = self._alone(entry, balance, common, told) if head is None else _behind(entry, head)
                decisions.append(decision)
                if common is None and isinstance(decision, Lift):
                    common = common_cards(self._ledger, unit)
                if fifo and head is None:
                    head = _head([decision])
        return decisions

    def _together(self, unit: Unit, balance: Balance | None) -> list[Decision]:
        """What is decided on a group as a whole; the members left over are looked at one by one."""
        if unit.group is None:
            return []
        if balance is not None and self._ledger.queues[unit.queue].open:
            shortfall = declared_shortfall(self._ledger, unit, balance)
            if shortfall is not None:
                self._note(unit.entries, {shortfall.reason})
                return list(_hold_all(unit.entries, unit.group, shortfall))
        return self._gang(unit, balance) if unit.lacks_members else []

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
        trial = LedgerTrial(self._ledger, ready, partial(self._choice.shortfall, balance), self._lift_with)
        outcome = Outcome()
        for members in choices(self._ledger, unit, [member_of(self._ledger, entry) for entry in ready]):
            outcome = assign(members, wanted, progress.missing_tasks, trial)
            if outcome.chosen:
                break
        self._ledger.reset_marks(marks)
        if outcome.chosen:
            self._ledger.touched.add(unit.queue)
            self._ledger.devices.tell_again(trial.lifts)
            return [*held, *(trial.lifts[each.member.uid] for each in outcome.chosen)]
        shortfall = trial.shortfall or Shortfall(
            reasons.MIXED_CARDS, f"Queue <{unit.queue}>: no card is accepted by {wanted} pods of the group"
        )
        self._note(ready, trial.obstacles)
        reason, most = shortfall.reason, f"{trial.most} fit"
        if outcome.exhausted:
            reason, most = (
                reasons.GANG_SEARCH_GIVEN_UP,
                f"{trial.most} were found to fit when the search was given up",
            )
        text = f"{shortfall.message}; PodGroup {group.key} needs {wanted} more members at once, {most}"
        return [*held, *_hold_all(ready, group, Shortfall(reason, text))]

    def _alone(
        self, entry: Entry, balance: Balance | None, common: Sequence[str] | None, told: dict[_Wish, Hold]
    ) -> Decision:
        """Pods that ask for the same are held for the same reason until a lift changes what is left."""
        wish = _wish(entry) if common is None else None
        known = told.get(wish) if wish is not None else None
        if known is not None:
            return Hold(entry.pod, known.queue, known.reason, known.message, known.announced)
        decision = self._decide(entry, balance, common)
        if isinstance(decision, Lift):
            told.clear()
        elif wish is not None:
            told[wish] = decision
        return decision

    def _decide(self, entry: Entry, balance: Balance | None, common: Sequence[str] | None) -> Decision:
        if not entry.pod.asks:
            # Gated by hand, or the card name was taken away while it waited.
            return self._lift(entry, None)
        obstacle = self._obstacle(entry)
        if obstacle is not None:
            return obstacle
        card = self._choice.choose(entry, balance, common)
        if not isinstance(card, Shortfall):
            return self._lift(entry, card)
        self._note((entry,), {card.reason})
        return Hold(entry.pod, entry.queue, card.reason, card.message)

    def _note(self, entries: Sequence[Entry], obstacles: Collection[str]) -> None:
        """Remembers by what, besides quota given back in the queue, these waiting pods of one queue may be helped."""
        queue = entries[0].queue
        if reasons.NO_FREE_CARD in obstacles:
            self._ledger.want_room(queue, frozenset().union(*(entry.demand.cards for entry in entries)))
        if reasons.INSUFFICIENT_CPU_QUOTA in obstacles or reasons.INSUFFICIENT_MEMORY_QUOTA in obstacles:
            self._ledger.wants_cpu_memory.add(queue)

    def _obstacle(self, entry: Entry) -> Hold | None:
        """Why the pod cannot be lifted however much is left, None when it can."""
        closed = self._closed(entry)
        if closed is not None:
            return closed
        if entry.demand.problem:
            why: Shortfall | None = uncountable(entry.queue, entry.demand.problem)
        else:
            why = self._ledger.devices.obstacle(entry.pod, entry.queue)
        return None if why is None else Hold(entry.pod, entry.queue, why.reason, why.message)

    def _closed(self, entry: Entry) -> Hold | None:
        """Why the queue as a whole takes nobody in, None when it does.

        A missing default queue is no obstacle for a pod that nothing sent there and that needs no card quota.
        """
        queue = self._ledger.queues.get(entry.queue)
        if queue is None:
            if not entry.attribution.named and not entry.pod.card_name:
                return None
            why = queue_missing(entry.queue)
            return Hold(entry.pod, entry.queue, why.reason, why.message)
        if not queue.open:
            why = queue_closed(queue)
            return Hold(entry.pod, entry.queue, why.reason, why.message, announced=False)
        if entry.queue == names.ROOT_QUEUE and entry.pod.card_name:
            text = "Queue <root> stands above all queues; pods with cards need a queue of their own"
            return Hold(entry.pod, entry.queue, reasons.QUEUE_NOT_OPEN, text)
        return None

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
        lifted = pod.ungated(annotations)
        self._ledger.assume(lifted)
        return Lift(pod, entry.queue, assigned, record, self._requirement(entry, card), lifted)

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


def _wish(entry: Entry) -> _Wish | None:
    """What decides on a pod that wants cards and nothing else, on any node; None for all other pods."""
    pod, demand = entry.pod, entry.demand
    more = demand.mgpu is not None or demand.problem or pod.claims
    if demand.card is None or more or pod.node_selector or pod.affinity:
        return None
    weight = demand.cpu_memory
    return demand.card.expression, demand.card.milli, weight.get(CPU, 0), weight.get(MEMORY, 0)
