"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.

A pass may be paused between any two of its steps, and the ledger may change meanwhile: what was booked stays booked, what is
decided is decided by what is there then, and what has changed since it was looked at is left to the next pass.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

from core.plan.choice import Choice
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Cuts, Effort, limited
from core.plan.judge import Judge
from core.plan.together import Gangs
from core.plan.turn import Turn
from core.plan.uniform import common_cards
from core.plan.units import Unit, has_unfinished, units_of
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.line import Line
from core.queues.share import share_of
from core.steps import Steps

T = TypeVar("T")


class Planner:
    """Decides on waiting pods, one queue after the other, against the ledger as it is at that moment.

    Of one planner no two passes may be under way at once.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._judge = Judge(ledger)
        self._choice = Choice(ledger)
        self._gangs = Gangs(ledger, self._choice, self._judge)
        self._cuts = Cuts()

    def run(self, queues: Iterable[str]) -> Iterator[Decision | None]:
        """One pass over these queues, in their order; None wherever it may be paused.

        Each queue, and in it each pod or gang, has its part of the effort that a pass may cost; who needs more is looked at
        again in the next pass, with twice as much.
        """
        order, effort = self.order(queues), Effort()
        for number, name in enumerate(order):
            part = effort.part(len(order) - number)
            yield from self._decide(name, Effort(part), effort, everybody=False)
            yield None

    def order(self, queues: Iterable[str]) -> list[str]:
        """The order in which queues are served: priority, then the smaller share in use, then name.

        Before all others those with a gang that stopped short of its minimum: what it lacks on the nodes, or of what it
        shares with other queues, must not go to them.
        """
        return sorted(queues, key=self._rank)

    def decide(self, name: str) -> list[Decision]:
        """Decides on every waiting pod of a queue, in their order, without a pause or a limit.

        What is lifted is assumed in the ledger.
        """
        without_end = Effort(1 << 40)
        decisions = self._decide(name, without_end, without_end, everybody=True)
        return [decision for decision in decisions if decision is not None]

    def refuse(self, uid: str, why: str) -> None:
        """Holds a pod whose lift the API server refuses, with this reason, until `accept`."""
        self._judge.refused[uid] = why

    def accept(self, uid: str) -> None:
        """Lets a pod be lifted again."""
        self._judge.refused.pop(uid, None)

    def stands(self, lift: Lift) -> bool:
        """Whether a lift that is not written yet may still be: the queue is the same, takes pods in and is within its quota.

        What is lifted is counted, so a quota that was cut meanwhile is found here.
        """
        ledger, queue = self._ledger, lift.queue
        entry = ledger.entry(lift.pod.uid)
        if entry is None or entry.queue != queue or self._judge.closed(entry) is not None:
            return False
        limits = ledger.limits.get(queue)
        if limits is None:
            return True
        over = any(ledger.used(queue, card) > limits.cards.get(card, 0) for card in lift.assigned) or any(
            key in limits.shares and ledger.used(queue, key) > limits.shares[key]
            for key in entry.demand.shares
        )
        return not over and not ledger.devices.overdrawn(lift.pod)

    # -- one queue -------------------------------------------------------------------------------------------

    def _rank(self, name: str) -> tuple[bool, int, float, str]:
        queue = self._ledger.queues.get(name)
        share = share_of(self._ledger, name)
        return (not has_unfinished(self._ledger, name), -queue.priority if queue else 0, share, name)

    def _decide(
        self, name: str, effort: Effort, of_pass: Effort, *, everybody: bool
    ) -> Iterator[Decision | None]:
        queue, account = self._ledger.queues.get(name), self._ledger.accounts.get(name)
        if account is None:
            return
        turn = Turn(name, effort, of_pass, fifo=queue is not None and queue.fifo)
        if account.line.grouped:
            yield from self._units(turn)
        else:
            yield from self._pods(turn, account.line, everybody=everybody)

    # -- a queue of pods that belong to no group ---------------------------------------------------------------

    def _pods(self, turn: Turn, line: Line, *, everybody: bool) -> Iterator[Decision | None]:
        """Of pods that ask for the same one is looked at for all: where it has to wait, so have those behind it.

        They are told what it is told, unless they were told already. With `everybody` each is looked at, so that the numbers
        that it is told are those at its own turn.
        """
        tell = dict.fromkeys(line.uids()) if everybody else line.take_new()
        heads = [(places[0], wish) for wish, places in line.by_wish.items()]
        heapify(heads)
        turn.units = len(heads)
        held: dict[Hashable, Hold] = {}
        try:
            while heads and turn.head is None:
                place, wish = heappop(heads)
                entry = line.entry(place, wish)
                decision = None
                if entry is not None:
                    decision = yield from self._alone(entry, turn)
                    if decision is None and turn.fifo:
                        return
                if decision is not None:
                    turn.heard((decision,))
                    tell.pop(decision.pod.uid, None)
                    yield decision
                alone = everybody or (decision is not None and decision.pod.uid in self._judge.refused)
                if isinstance(decision, Hold) and not alone:
                    held[wish] = decision
                elif entry is None or decision is not None:
                    following = line.after(place, wish)
                    if following is not None:
                        heappush(heads, (following, wish))
            for uid in line.in_order(tell):
                hold = self._like_others(uid, line, held, turn)
                if hold is not None:
                    del tell[uid]
                    yield hold
        finally:
            line.put_new(tell)

    def _like_others(self, uid: str, line: Line, held: Mapping[Hashable, Hold], turn: Turn) -> Hold | None:
        """What a pod is told that was not looked at itself; None where that is still to come."""
        entry = line.pods.get(uid)
        if entry is None:
            return None
        if turn.head is not None:
            return _behind(entry, turn.head)
        like = held.get(entry.wish)
        return (
            None if like is None else Hold(entry.pod, like.queue, like.reason, like.message, like.announced)
        )

    # -- a queue with groups -----------------------------------------------------------------------------------

    def _units(self, turn: Turn) -> Iterator[Decision | None]:
        units = yield from units_of(self._ledger, turn.queue)
        turn.units = len(units)
        for unit in units:
            yield from self._unit(unit, turn)
            if turn.undecided_head:
                return

    def _unit(self, unit: Unit, turn: Turn) -> Iterator[Decision | None]:
        decided: set[str] = set()
        if turn.head is None and unit.group is not None:
            together = yield from self._limited(unit.key, self._gangs.decide(unit, turn.told_gangs), turn)
            if together is None:
                turn.undecided_head = turn.fifo
                return
            decided = {decision.pod.uid for decision in together}
            turn.heard(together)
            yield from together
        common = common_cards(self._ledger, unit) if turn.head is None else None
        for entry in unit.entries:
            now = self._ledger.current(entry)
            if now is None or now.pod.uid in decided:
                continue
            decision = (
                (yield from self._alone(now, turn, common)) if turn.head is None else _behind(now, turn.head)
            )
            if decision is not None:
                turn.heard((decision,))
                if common is None and isinstance(decision, Lift):
                    common = common_cards(self._ledger, unit)
                yield decision
            elif turn.fifo:
                turn.undecided_head = True
                return

    # -- one pod or group, with the effort that is due ----------------------------------------------------------

    def _limited(self, key: Hashable, steps: Steps[T], turn: Turn) -> Steps[T | None]:
        """What is decided within the part of the effort that is due; None when that is put off to the next pass.

        It is when the part does not suffice, or what was looked at has changed meanwhile.
        """
        most = self._cuts.part(key, turn.effort.part(turn.units), turn.of_pass.left)
        value, taken = yield from limited(steps, most)
        turn.spend(taken)
        self._cuts.note(key, cut=value is None)
        if value is None:
            self._ledger.wakeups.look_at(turn.queue)
        return value

    def _alone(self, entry: Entry, turn: Turn, common: Sequence[str] | None = None) -> Steps[Decision | None]:
        """Pods that ask for the same are held for the same reason until a lift changes what is left."""
        shared = common is None and entry.pod.uid not in self._judge.refused
        known = turn.told.get(entry.wish) if shared else None
        if known is not None:
            return Hold(entry.pod, known.queue, known.reason, known.message, known.announced)
        judged = self._judge.judge(entry, self._choice, common)
        decision = yield from self._limited(entry.pod.uid, judged, turn)
        if isinstance(decision, Hold) and shared:
            turn.told[entry.wish] = decision
        return decision


def _behind(entry: Entry, head: Hold) -> Hold:
    text = f"Queue <{entry.queue}> is first in, first out: behind {head.pod.key}, which waits: {head.message}"
    return Hold(entry.pod, entry.queue, head.reason, text, announced=False)
