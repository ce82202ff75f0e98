"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.

A pass may be paused between any two of its steps, and the ledger may change meanwhile: what was booked stays booked, what is
decided is decided by what is there then, and what has changed since it was looked at is left to the next pass.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from core import names, reasons
from core.affinity import NodeRequirement
from core.cards.assigned import render_assigned
from core.mgpu.affinity import node_requirement
from core.plan.choice import Choice
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Cuts, Ration
from core.plan.placement import CardPlacement
from core.plan.remembered import Remembered
from core.plan.together import Gangs, note
from core.plan.turn import Turn, wish_of
from core.plan.uniform import common_cards
from core.plan.units import Unit, queues_to_finish, units_of
from core.queues.account import Entry
from core.queues.check import balance_of
from core.queues.ledger import Ledger
from core.queues.share import share_of
from core.queues.shortfall import queue_closed, queue_missing, uncountable
from core.shortfall import Shortfall
from core.steps import Steps, finish

T = TypeVar("T")

_RANKED_IN_ONE_STEP: Final = 50


class Planner:
    """Decides on waiting pods, one queue after the other, against the ledger as it is at that moment.

    Of one planner no two passes may be under way at once.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._choice = Choice(ledger)
        self._placement = CardPlacement(ledger)
        self._gangs = Gangs(ledger, self._choice, self._obstacle, self._lift)
        self._cuts = Cuts()
        self._remembered = Remembered(ledger)
        self._refused: dict[str, str] = {}

    def run(self, queues: Iterable[str]) -> Iterator[Decision | None]:
        """One pass over these queues, in their order; None wherever it may be paused.

        Each queue, and in it each pod or gang, has its part of the effort that a pass may cost; who needs more is looked at
        again in the next pass, with twice as much. One that may need more than a whole pass has comes after all others.
        """
        self._remembered.drop_unused()
        order, effort = (yield from self._ordered(queues)), self._cuts.new_pass()
        for number, name in enumerate(order):
            yield from self._decide(name, Ration(effort, effort.part(len(order) - number)))
            yield None
        costly = self._cuts.take_costly()
        if costly is not None:
            key, name = costly
            yield from self._decide(name, Ration(effort, 0, key))

    def order(self, queues: Iterable[str]) -> list[str]:
        """The order in which queues are served: priority, then the smaller share in use, then name.

        Before all others those with a gang that stopped short of its minimum: what it lacks on the nodes, or of what it
        shares with other queues, must not go to them.
        """
        return finish(self._ordered(queues))

    def decide(self, name: str) -> list[Decision]:
        """Decides on every waiting pod of a queue, in their order, without a pause or a limit.

        What is lifted is assumed in the ledger.
        """
        return [decision for decision in self._decide(name, None) if decision is not None]

    def refuse(self, uid: str, why: str) -> None:
        """Holds a pod whose lift the API server refuses, with this reason, until `accept`."""
        self._refused[uid] = why

    def accept(self, uid: str) -> None:
        """Lets a pod be lifted again."""
        self._refused.pop(uid, None)

    def stands(self, lift: Lift) -> bool:
        """Whether a lift that is not written yet may still be: the queue is the same, takes pods in and is within its quota.

        What is lifted is counted, so a quota that was cut meanwhile is found here.
        """
        ledger, queue = self._ledger, lift.queue
        entry = ledger.entry(lift.pod.uid)
        if entry is None or entry.queue != queue or self._closed(entry) is not None:
            return False
        balance = balance_of(ledger, queue)
        return balance is None or not (
            balance.overdrawn(lift.assigned, entry.demand.shares, entry.demand.cpu_memory)
            or ledger.devices.overdrawn(lift.pod)
        )

    # -- one queue -------------------------------------------------------------------------------------------

    def _ordered(self, queues: Iterable[str]) -> Steps[list[str]]:
        first = yield from queues_to_finish(self._ledger)
        ranks: dict[str, tuple[bool, int, float, str]] = {}
        for number, name in enumerate(queues, 1):
            queue = self._ledger.queues.get(name)
            priority = queue.priority if queue is not None else 0
            ranks[name] = name not in first, -priority, share_of(self._ledger, name), name
            if number % _RANKED_IN_ONE_STEP == 0:
                yield
        return sorted(ranks, key=ranks.__getitem__)

    def _decide(self, name: str, ration: Ration | None) -> Iterator[Decision | None]:
        yield from self._ledger.settle()
        queue = self._ledger.queues.get(name)
        units = yield from units_of(self._ledger, name)
        turn = Turn(name, queue is not None and queue.fifo, ration)
        if ration is not None:
            ration.units = sum(1 if unit.group is not None else len(unit.entries) for unit in units)
        self._remembered.begin(name)
        for unit in units:
            yield from self._unit(unit, turn)
            if turn.undecided_head:
                break
        self._remembered.end(whole=not turn.undecided_head)

    def _unit(self, unit: Unit, turn: Turn) -> Iterator[Decision | None]:
        decided: set[str] = set()
        if turn.head is None and unit.group is not None:
            together = yield from self._together(unit, turn)
            if together is None:
                # What a gang lacks that holds something already must not go to those behind it.
                turn.undecided_head = turn.fifo or unit.comes_first
                return
            decided = {decision.pod.uid for decision in together}
            turn.heard(together, of_gang=True)
            yield from self._handed_out(together)
        common = common_cards(self._ledger, unit) if turn.head is None else None
        for entry in unit.entries:
            yield from self._ledger.settle()
            now = self._ledger.current(entry)
            if now is None or now.pod.uid in decided:
                continue
            decision = (
                (yield from self._alone(now, common, turn)) if turn.head is None else _behind(now, turn.head)
            )
            if decision is not None:
                turn.heard((decision,))
                if common is None and isinstance(decision, Lift):
                    common = common_cards(self._ledger, unit)
                yield decision
            elif turn.fifo:
                turn.undecided_head = True
                return

    def _handed_out(self, decisions: Sequence[Decision]) -> Iterator[Decision]:
        """These decisions; lifts that the caller does not ask for any more are taken back."""
        left = deque(decisions)
        try:
            while left:
                yield left.popleft()
        finally:
            for decision in left:
                if isinstance(decision, Lift):
                    self._ledger.retract(decision.lifted)

    def _limited(self, key: Hashable, steps: Steps[T], turn: Turn) -> Steps[tuple[T | None, int]]:
        """What is decided within the part of the effort that is due, and in how many steps; None when it is put off.

        It is when the part does not suffice, or what was looked at has changed meanwhile.
        """
        if turn.ration is None:
            return (yield from steps), 0
        waits = partial(self._others_wait, turn.queue)
        value, taken = yield from self._cuts.limited(key, turn.queue, steps, turn.ration, waits)
        if value is None:
            self._ledger.wakeups.look_at(turn.queue)
        return value, taken

    def _others_wait(self, queue: str) -> bool:
        return any(name != queue for name in self._ledger.wakeups.pending)

    def _together(self, unit: Unit, turn: Turn) -> Steps[Sequence[Decision] | None]:
        """What is decided on a group as a whole; None when that is put off."""
        known = self._remembered.recall(unit.key, unit.entries) if turn.ration is not None else ()
        if known:
            return known
        helped = self._ledger.wakeups.helped(turn.queue)
        found, _ = yield from self._limited(unit.key, self._gangs.decide(unit, turn.told_gangs), turn)
        holds = [decision for decision in found or () if isinstance(decision, Hold)]
        if found and len(holds) == len(found):
            self._remembered.keep(unit.key, unit.entries, helped, holds)
        return found

    # -- one pod ---------------------------------------------------------------------------------------------

    def _alone(self, entry: Entry, common: Sequence[str] | None, turn: Turn) -> Steps[Decision | None]:
        """Pods that ask for the same are held for the same reason until a lift changes what is left."""
        wish = wish_of(entry) if common is None and entry.pod.uid not in self._refused else None
        known = turn.told.get(wish) if wish is not None else None
        if known is not None:
            return Hold(entry.pod, known.queue, known.reason, known.message, known.announced)
        decision = yield from self._costing(entry, common, turn)
        if isinstance(decision, Hold) and wish is not None:
            turn.told[wish] = decision
        return decision

    def _costing(self, entry: Entry, common: Sequence[str] | None, turn: Turn) -> Steps[Decision | None]:
        """What becomes of a pod, as it was told before where nothing has happened since; None when that is put off."""
        key = entry.pod.uid
        known = self._remembered.recall(key, (entry,), common) if turn.ration is not None else ()
        if known:
            return known[0]
        helped = self._ledger.wakeups.helped(turn.queue)
        decision, steps = yield from self._limited(key, self._judge(entry, common), turn)
        if isinstance(decision, Hold) and steps:
            self._remembered.keep(key, (entry,), helped, (decision,), common)
        return decision

    def _judge(self, entry: Entry, common: Sequence[str] | None) -> Steps[Decision | None]:
        """What becomes of a pod; None when it is not any more what it was when this began."""
        ledger = self._ledger
        if not entry.pod.asks and entry.pod.uid not in self._refused:
            # Gated by hand, or the card name was taken away while it waited.
            return self._lift(entry, None)
        while True:
            changes = ledger.changes
            obstacle = self._obstacle(entry)
            if obstacle is not None:
                return obstacle
            card = yield from self._choice.choose(entry, balance_of(ledger, entry.queue), common)
            if ledger.changes == changes:
                break
            now = ledger.current(entry) if ledger.settled else None
            if now is None:
                return None
            entry = now
        if not isinstance(card, Shortfall):
            return self._lift(entry, card)
        note(ledger, (entry,), {card.reason})
        return Hold(entry.pod, entry.queue, card.reason, card.message)

    def _obstacle(self, entry: Entry) -> Hold | None:
        """Why the pod cannot be lifted however much is left, None when it can."""
        closed = self._closed(entry)
        if closed is not None:
            return closed
        if entry.pod.uid in self._refused:
            why: Shortfall | None = Shortfall(reasons.LIFT_REFUSED, self._refused[entry.pod.uid])
        elif entry.demand.problem:
            why = uncountable(entry.queue, entry.demand.problem)
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
        with self._ledger.wakeups.muted():
            # What it takes from the others of its queue helps none of them, and those behind it are decided on next.
            self._ledger.assume(lifted)
        self._ledger.wakeups.publish(entry.queue)
        self._ledger.devices.tell_again((pod.uid,))
        return Lift(pod, entry.queue, assigned, record, self._requirement(entry, card), lifted)

    def _requirement(self, entry: Entry, card: str | None) -> NodeRequirement:
        of_card = NodeRequirement() if card is None else self._placement.requirement(card)
        share = entry.demand.mgpu
        return of_card if share is None else of_card & node_requirement(share)


def _behind(entry: Entry, head: Hold) -> Hold:
    text = f"Queue <{entry.queue}> is first in, first out: behind {head.pod.key}, which waits: {head.message}"
    return Hold(entry.pod, entry.queue, head.reason, text, announced=False)
