"""One quota pass: pods in their order, each against what is left, lifted or held with a reason.

What is lifted is assumed in the ledger at once, so the next pod sees it. The caller does the writes and takes back
(`Ledger.forget`) what failed.

A pass may be paused between any two of its steps, and the ledger may change meanwhile: what was booked stays booked, what is
decided is decided by what is there then, and what has changed since it was looked at is left to the next pass.
"""

from collections import deque
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, TypeVar

from core.plan.choice import Choice
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Cuts, Ration
from core.plan.judge import Judge
from core.plan.remembered import Remembered
from core.plan.together import Gangs
from core.plan.turn import Turn
from core.plan.uniform import common_cards
from core.plan.units import Unit, queues_to_finish, units_of
from core.queues.access import not_allowed
from core.queues.check import balance_of
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.line import Line
from core.queues.share import share_of
from core.steps import Steps, finish

T = TypeVar("T")

_RANKED_IN_ONE_STEP: Final = 25


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
        self._remembered = Remembered(ledger)

    def run(self, queues: Iterable[str]) -> Generator[Decision | None]:
        """One pass over these queues, in their order; None wherever it may be paused.

        Each queue, and in it each pod or gang, has its part of the effort that a pass may cost; who needs more is looked at
        again in the next pass, with twice as much. One that may need more than a whole pass has comes after all others.
        """
        self._remembered.drop_unused()
        order, effort = (yield from self._ordered(queues)), self._cuts.new_pass()
        for number, name in enumerate(order):
            ration = Ration(effort, effort.part(len(order) - number))
            yield from self._decide(name, ration)
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
        self._judge.refused[uid] = why

    def accept(self, uid: str) -> None:
        """Lets a pod be lifted again."""
        self._judge.refused.pop(uid, None)

    def stands(self, lift: Lift) -> bool:
        """Whether a lift that is not written yet may still be: the queue is the same, takes pods in and is within its quota.

        What is lifted is counted, so a quota that was cut meanwhile is found here. Never is asked more than when it was
        decided, or the same would be decided and taken back for ever.
        """
        if not lift.pod.asks:
            return True
        entry, seen = self._ledger.entry(lift.pod.uid), self._ledger.observed(lift.pod.uid)
        # What is booked carries the record already; the pod as it is says which queue it would be decided for now.
        if entry is None or seen is None or self._ledger.attribution(seen).queue != lift.queue:
            return False
        return self._judge.closed(entry) is None and not self._choice.breaks_quota(
            balance_of(self._ledger, lift.queue), entry, lift.assigned
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
        """Without `ration` everybody is looked at, whatever that costs."""
        yield from self._ledger.settle()
        queue, account = self._ledger.queues.get(name), self._ledger.accounts.get(name)
        if account is None:
            return
        turn = Turn(name, queue is not None and queue.fifo, ration)
        self._remembered.begin(name)
        if account.line.grouped:
            yield from self._units(turn)
        else:
            yield from self._pods(turn, account.line)
        self._remembered.end(whole=not turn.undecided_head)

    # -- a queue of pods that belong to no group ---------------------------------------------------------------

    def _pods(self, turn: Turn, line: Line) -> Iterator[Decision | None]:
        """Of pods that ask for the same one is looked at for all: where it has to wait, so have those behind it.

        They are told what it is told, unless they were told already. Without a ration each is looked at, so that the numbers
        that it is told are those at its own turn.
        """
        everybody = turn.ration is None
        tell = dict.fromkeys(line.uids()) if everybody else line.take_new()
        heads = [(places[0], wish) for wish, places in line.by_wish.items()]
        heapify(heads)
        turn.expect(len(heads))
        held: dict[Hashable, Hold] = {}
        try:
            while heads and turn.head is None:
                yield from self._ledger.settle()
                place, wish = heappop(heads)
                entry = line.entry(place, wish)
                decision = None
                if entry is not None:
                    decision = yield from self._alone(entry, turn)
                    if decision is None and turn.fifo:
                        turn.undecided_head = True
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
        turn.expect(len(units))
        for unit in units:
            yield from self._unit(unit, turn)
            if turn.undecided_head:
                return

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

    # -- one pod or group, with the effort that is due ----------------------------------------------------------

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

    def _alone(self, entry: Entry, turn: Turn, common: Sequence[str] | None = None) -> Steps[Decision | None]:
        """Pods that ask for the same are held for the same reason until a lift changes what is left."""
        shared = common is None and entry.pod.uid not in self._judge.refused
        known = turn.told.get(entry.wish) if shared else None
        if known is not None:
            return Hold(entry.pod, known.queue, known.reason, known.message, known.announced)
        decision = yield from self._costing(entry, common, turn)
        if isinstance(decision, Hold) and shared:
            turn.told[entry.wish] = decision
        return decision

    def _costing(self, entry: Entry, common: Sequence[str] | None, turn: Turn) -> Steps[Decision | None]:
        """What becomes of a pod, as it was told before where nothing has happened since; None when that is put off."""
        key = entry.pod.uid
        known = self._remembered.recall(key, (entry,), common) if turn.ration is not None else ()
        if known:
            return known[0]
        helped = self._ledger.wakeups.helped(turn.queue)
        judged = self._judge.judge(entry, self._choice, common)
        decision, steps = yield from self._limited(key, judged, turn)
        if isinstance(decision, Hold) and steps:
            self._remembered.keep(key, (entry,), helped, (decision,), common)
        return decision


def _behind(entry: Entry, head: Hold) -> Hold:
    if not entry.allowed:
        refusal = not_allowed(entry.queue, entry.pod.namespace)
        return Hold(entry.pod, entry.queue, refusal.reason, refusal.message)
    text = f"Queue <{entry.queue}> is first in, first out: behind {head.pod.key}, which waits: {head.message}"
    return Hold(entry.pod, entry.queue, head.reason, text, announced=False)
