"""What is decided on the waiting pods of one queue, one pod or gang after the other, against what is left at that moment.

It may be paused between any two of its steps, and left for other queues where nothing of it is in the balance.
"""

from collections import deque
from collections.abc import Container, Generator, Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from heapq import heappop, heappush, merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import Final, TypeVar

from core.plan.choice import Choice
from core.plan.confinement import Confinement
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Cuts, Ration
from core.plan.judge import Judge
from core.plan.one_card import held_cards
from core.plan.passed_over import behind, like_others
from core.plan.patience import Patience
from core.plan.remembered import Remembered
from core.plan.together import Gangs
from core.plan.turn import Turn
from core.plan.units import Unit, let_go_of, renewed, units_of
from core.plan.verdict import handed_out
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.line import Line
from core.steps import Pace, Steps, batched, in_order

T = TypeVar("T")

_PASSED_IN_A_STEP: Final = 500
"""Pods that cost nothing: members of a gang that have been decided on with it, and who is left behind."""

Decisions = Generator[Decision | None]
"""Decisions in their order; None wherever it may be paused."""


class Courses:
    """Decides on queues. Several may be under way, as long as all but one of them rest (`Turn.resting`)."""

    def __init__(self, ledger: Ledger, judge: Judge, choice: Choice, cuts: Cuts) -> None:
        self._ledger = ledger
        self._judge = judge
        self._choice = choice
        self._gangs = Gangs(ledger, choice, judge)
        self._cuts = cuts
        self._remembered = Remembered(ledger)
        self._patience = Patience()

    def drop_unused(self) -> None:
        """Keeps nothing about queues in which nobody is."""
        self._remembered.drop_unused()
        self._patience.keep(self._ledger.accounts)

    def turn(self, name: str, ration: Ration | None) -> Turn:
        """The turn of a queue; without `ration` everybody is looked at, whatever that costs."""
        queue = self._ledger.queues.get(name)
        patient = ration is None or self._patience.lasts(name)
        return Turn(
            name, queue is not None and queue.fifo, ration, self._remembered.begin(name), patient=patient
        )

    def decide(self, turn: Turn) -> Decisions:
        """Decides on every waiting pod of the queue that is not left behind. What is lifted is assumed in the ledger."""
        yield from self._ledger.settle_sums()
        account = self._ledger.accounts.get(turn.queue)
        grouped = account is not None and account.line.grouped
        turn.first_decided = not grouped
        if account is None:
            return
        if grouped:
            yield from self._units(turn)
        else:
            yield from self._pods(turn, account.line)
        turn.answers.end(whole=not turn.undecided_head)
        # Who needs more effort has it one day, however many turns come before.
        if turn.ration is not None and not (turn.undecided_head and turn.fell_short):
            self._patience.over(turn.queue, undecided=turn.undecided_head)

    # -- a queue of pods that belong to no group ---------------------------------------------------------------

    def _pods(self, turn: Turn, line: Line) -> Iterator[Decision | None]:
        """Of pods that ask for the same one is looked at for all: where it has to wait, so have those behind it.

        They are told what it is told, unless they were told already. Without a ration each is looked at, so that the numbers
        that it is told are those at its own turn.

        As many of them are looked at as are there when this begins: were those to be who come meanwhile as well, it might
        never end, and who comes meanwhile and asks for something else would have no turn.
        """
        everybody = turn.ration is None
        if everybody:
            line.tell_all()
        heads = yield from turn.rests(line.heads())
        turn.expect(len(heads))
        held: dict[Hashable, Hold] = {}
        pace = Pace(_PASSED_IN_A_STEP)
        while heads and turn.head is None:
            if not self._ledger.sums_settled:
                yield from self._ledger.settle_sums()
            place, number, wish, count = heappop(heads)
            entry = line.entry(place, wish)
            if entry is not None and self._ledger.left_behind(entry.pod.uid):
                entry = None
                if turn.puts_off():
                    return
                if pace.due():
                    yield from turn.rest(None)
            decision = None
            if entry is not None:
                decision = yield from self._alone(entry, turn)
                if decision is None and turn.waits_for(first=turn.fifo):
                    return
            if decision is not None:
                turn.heard((decision,))
                line.told(decision.pod.uid)
                yield from turn.rest(decision)
            alone = everybody or (decision is not None and decision.pod.uid in self._judge.refused)
            if isinstance(decision, Hold) and not alone:
                held[wish] = decision
            elif entry is None or decision is not None:
                following = line.after(place, wish) if count > 1 else None
                if following is not None:
                    heappush(heads, (following, number, wish, count - 1))
        for untold in line.untold():
            hold = like_others(untold, held, turn) if untold is not None else None
            if hold is not None:
                line.told(hold.pod.uid)
            if hold is not None or untold is None:
                yield from turn.rest(hold)

    # -- a queue with groups -----------------------------------------------------------------------------------

    def _units(self, turn: Turn) -> Iterator[Decision | None]:
        units = yield from turn.rests(units_of(self._ledger, turn.queue))
        turn.expect(len(units))
        yield from self._all_of(units, turn)
        yield from turn.rests(let_go_of(units))

    def _all_of(self, units: Sequence[Unit], turn: Turn) -> Iterator[Decision | None]:
        """First what gangs lack that hold something already; members beyond that come when they would if it were whole."""
        first = list(takewhile(attrgetter("comes_first"), units))
        again: list[tuple[Unit, set[str] | None]] = []
        for unit in first:
            decided = yield from self._as_a_whole(unit, turn)
            if turn.undecided_head:
                return
            if decided is not None:
                again.append((unit.in_line(), decided))
            yield from turn.rest(None)
        turn.first_decided = True
        if again:
            yield from turn.rest(None)
        again = yield from turn.rests(in_order(again, _rank, _PASSED_IN_A_STEP))
        others: Iterator[tuple[Unit, set[str] | None]] = (
            (unit, None) for unit in islice(units, len(first), None)
        )
        for unit, known in merge(again, others, key=_rank):
            decided = (
                (yield from self._as_a_whole(unit, turn))
                if known is None
                else (yield from self._rest(unit, known, turn))
            )
            if decided is not None:
                yield from self._one_by_one(unit, decided, turn)
            if turn.undecided_head:
                return
            yield from turn.rest(None)

    def _as_a_whole(self, unit: Unit, turn: Turn) -> Generator[Decision | None, None, set[str] | None]:
        """Decides on the members that are lifted together. Returns their UIDs; None when that is put off."""
        if turn.head is not None or unit.group is None:
            return set()
        if not self._ledger.sums_settled:
            yield from self._ledger.settle_sums()
        now = renewed(self._ledger, unit)
        if now is None:
            turn.leaves(fell_short=False, waits=True)
        together = (yield from self._together(now, turn)) if now is not None else None
        if together is None:
            # What a gang lacks that holds something already must not go to those behind it.
            turn.waits_for(first=turn.fifo or unit.comes_first)
            yield from turn.clear_up()
            return None
        decided: set[str] = set()
        left = deque(together)
        together = None
        with closing(handed_out(left, self._ledger)) as decisions:
            for decision in decisions:
                decided.add(decision.pod.uid)
                turn.heard((decision,), of_gang=True, stuck=unit.stuck)
                yield decision
        yield from turn.clear_up()
        return decided

    def _rest(
        self, unit: Unit, known: set[str], turn: Turn
    ) -> Generator[Decision | None, None, set[str] | None]:
        """Of a gang that is as whole as it was let in: the members that a minimum which was raised since wants besides."""
        left = tuple(entry for entry in unit.entries if entry.pod.uid not in known)
        if not left or unit.group is None:
            return known
        decided = yield from self._as_a_whole(replace(unit, entries=left), turn)
        return None if decided is None else known | decided

    def _one_by_one(self, unit: Unit, decided: Container[str], turn: Turn) -> Iterator[Decision | None]:
        """Decides on the members on whom that was not done together, and on pods that belong to no group."""
        renewed_unit = renewed(self._ledger, unit)
        if renewed_unit is None:
            turn.puts_off()
            return
        unit = renewed_unit
        held = yield from held_cards(self._ledger, unit)
        gang = unit if unit.group is not None else None
        pace = Pace(_PASSED_IN_A_STEP)
        for entry in unit.entries:
            if entry.pod.uid in decided:
                if pace.due():
                    yield from turn.rest(None)
                continue
            if not self._ledger.sums_settled:
                yield from self._ledger.settle_sums()
            if self._ledger.left_behind(entry.pod.uid):
                if turn.puts_off():
                    return
                if pace.due():
                    yield from turn.rest(None)
                continue
            now = self._ledger.current(entry)
            if now is None:
                continue
            if turn.head is None and self._lacks_members(unit):
                turn.puts_off()
                return
            decision = (
                (yield from self._alone(now, turn, held.confinement(now), gang))
                if turn.head is None
                else behind(now, turn.head)
            )
            if decision is not None:
                turn.heard((decision,))
                if isinstance(decision, Lift):
                    decision = replace(held.lifted(now, decision), beyond=unit.has_tasks)
                yield from turn.rest(decision)
            elif turn.waits_for(first=turn.fifo):
                return

    def _lacks_members(self, unit: Unit) -> bool:
        """Whether a unit has come to lack members that have to be lifted together: who is left is not to be lifted alone then."""
        if unit.group is None or self._ledger.groups.version(unit.group.key) == unit.version:
            return False
        now = renewed(self._ledger, unit)
        return now is None or now.lacks_members

    # -- one pod or group, with the effort that is due ----------------------------------------------------------

    def _limited(
        self, key: Hashable, state: object, steps: Steps[T], turn: Turn
    ) -> Steps[tuple[T | None, int]]:
        """What is decided within the part of the effort that is due, and in how many steps; None when it is put off.

        It is when the part does not suffice, what was looked at has changed, or another one is waited for. `state` is what may
        decide about how much it needs.
        """
        ration = turn.ration
        if ration is None:
            return (yield from steps), 0
        turn.told_gangs.for_another = False
        value, taken = yield from self._cuts.limited(key, turn.queue, steps, ration, state)
        if value is None:
            comes_last = key == ration.costly or self._cuts.is_costly(key) or turn.told_gangs.for_another
            turn.leaves(fell_short=ration.fell_short, waits=not comes_last)
        return value, taken

    def _together(self, unit: Unit, turn: Turn) -> Steps[Sequence[Decision] | None]:
        """What is decided on a group as a whole; None when that is put off."""
        known = (yield from turn.answers.recalled(unit.key, unit.entries)) if turn.ration is not None else ()
        if known:
            return known
        state = unit.progress and (unit.progress.minimum, unit.progress.missing, len(unit.entries))
        deciding = self._gangs.decide(unit, turn.told_gangs, turn.leavings)
        found, _ = yield from self._limited(unit.key, state, deciding, turn)
        # Who is lifted comes after those who are held, and until it is handed out nothing is to come between.
        if found and isinstance(found[-1], Hold):
            holds: list[Hold] = []
            for some in batched(found, _PASSED_IN_A_STEP):
                if holds:
                    yield
                holds += [decision for decision in some if isinstance(decision, Hold)]
            turn.answers.keep(unit.key, unit.entries, unit.helped, holds)
        return found

    def _alone(
        self, entry: Entry, turn: Turn, confined: Confinement | None = None, gang: Unit | None = None
    ) -> Steps[Decision | None]:
        """Pods that ask for the same are held for the same reason until a lift changes what is left; `gang` is that of a member."""
        together = gang.starts_with if gang is not None else 1
        shared, wish = entry.pod.uid not in self._judge.refused, (entry.wish, confined)
        known = turn.told.get(wish) if shared else None
        if known is not None:
            return Hold(entry.pod, known.queue, known.why, known.announced)
        decision: Decision | None = self._like(wish, entry, together, turn) if shared else None
        if decision is not None:
            return decision
        helped = gang.helped if gang is not None else self._ledger.wakeups.helped(turn.queue)
        decision = yield from self._costing(entry, confined, together, helped, turn)
        if isinstance(decision, Hold) and shared:
            turn.told[wish] = decision
        elif isinstance(decision, Lift) and shared:
            turn.granted[wish] = self._judge.precedent(entry, decision, together)
        return decision

    def _like(
        self, wish: tuple[Hashable, Confinement | None], entry: Entry, together: int, turn: Turn
    ) -> Lift | None:
        """Lifts a pod as the last one was that asked for the same, without another look; None when it takes one."""
        precedent = turn.granted.get(wish)
        if precedent is None or turn.ration is None:
            return self._judge.like(precedent, entry, together)
        if turn.answers.recall(entry.pod.uid, (entry,), wish[1]):
            return None
        lift = self._judge.like(precedent, entry, together)
        if lift is not None:
            self._cuts.spare(entry.pod.uid, turn.ration)
        return lift

    def _costing(
        self, entry: Entry, confined: Confinement | None, together: int, helped: int, turn: Turn
    ) -> Steps[Decision | None]:
        """What becomes of a pod, as it was told before where nothing has happened since; None when that is put off.

        What is found out goes by what was of help to the queue until `helped`.
        """
        key = entry.pod.uid
        known = turn.answers.recall(key, (entry,), confined) if turn.ration is not None else ()
        if known:
            return known[0]
        judged = self._judge.judge(entry, self._choice, confined, together)
        decision, steps = yield from self._limited(key, hash(entry.wish), judged, turn)
        if isinstance(decision, Hold) and steps:
            turn.answers.keep(key, (entry,), helped, (decision,), confined)
        return decision


def _rank(unit_and_known: tuple[Unit, set[str] | None]) -> tuple[bool, int, int, str]:
    return unit_and_known[0].rank
