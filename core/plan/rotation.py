"""Whose turn it is in a pass.

The queues come in their order, one after the other, as long as none of them holds up the others for long. Each has an equal
share of the work of a round. One that needs more is left, where nothing of it is in the balance, and goes on in the next
round, when all others have had their turn. Queues that are woken while one has its turn do not wait for its end: they come in
between, with a small share each, and go on so if that does not suffice. But as long as nothing is decided on a gang that comes
before all others nobody has his turn who could take what it lacks of a queue above, see core.plan.kept_back.

A pass ends, whatever happens meanwhile: it waits for the queues with which it began, one course of each, and for no other. Who
came in between and is not through by then is among those with which the next pass begins.

Work is counted in the steps of core.steps; so is what costs a decision that needs no pause.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from core.plan.course import Courses, Decisions
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Costly, Cuts, Effort, Ration
from core.plan.kept_back import KeptBack
from core.plan.turn import Turn
from core.queues.wakeups import Wakeups
from core.steps import Pace, Steps, batched

BEFORE_OTHERS: Final = 16
"""Steps, about a hundredth of a second: so long a queue goes on while others wait that were woken meanwhile."""

_LOOKED_AT_IN_A_STEP: Final = 500
_KEPT_BACK_IN_A_STEP: Final = 50
"""Queues of which it is found out in half a millisecond whether they have, or wait for, a turn."""

_NOTHING: Final = -1
"""In place of a count: whatever is there has yet to be looked at."""

_STEP: Final = 32
_LIFT: Final = 4
_HOLD: Final = 1
_REST: Final = 4
"""What a step costs, and what it costs to go on where no step was needed."""


@dataclass(slots=True)
class _Course:
    """One queue that has begun, and what its present turn has cost."""

    turn: Turn
    decisions: Decisions
    cost: int = 0

    def leave(self) -> None:
        """Ends it where it rests; what was found out is kept for the next course of the queue."""
        self.decisions.close()
        self.turn.answers.end(whole=False)

    def has_yielded(self, item: Decision | None) -> None:
        """Counts what came last."""
        match item:
            case None:
                self.cost += _REST if self.turn.resting else _STEP
            case Lift():
                self.cost += _LIFT
            case Hold():
                self.cost += _HOLD

    @property
    def steps(self) -> int:
        """How much work this turn has been."""
        return self.cost // _STEP


class Rotation:
    """One pass. `order` puts queues in the order in which they are served."""

    def __init__(
        self,
        wakeups: Wakeups,
        courses: Courses,
        cuts: Cuts,
        kept: KeptBack,
        order: Callable[[Iterable[str]], Steps[list[str]]],
    ) -> None:
        self._wakeups = wakeups
        self._courses = courses
        self._cuts = cuts
        self._kept = kept
        self._order = order
        self._now = ""
        self._ahead: set[str] = set()
        """Whose turn in this round is still to come."""
        self._owed: set[str] = set()
        """For whose courses the pass waits."""
        self._aside: dict[str, _Course] = {}
        """Who of them goes on in the next round."""
        self._guests: dict[str, _Course] = {}
        """Who goes on in between, for which the pass does not wait."""
        self._put_off: dict[str, bool] = {}
        """Where somebody was left to be looked at again, and whether anybody waits for the next pass there."""
        self._costly: set[str] = set()
        """Queues that have come after all others already."""

    def run(self, queues: Iterable[str]) -> Decisions:
        """All decisions on these queues, and on those that are woken meanwhile as far as there is time for them."""
        self._kept.begin()
        try:
            names = list(queues)
            self._owed.update(names)
            while names:
                order = yield from self._order(names)
                self._ahead.update(order)
                yield from self._round(order)
                yield from self._last()
                # Where nobody goes on, those who were put off are left to the next pass.
                names = list({**self._aside, **self._put_off} if self._aside else ())
                if names:
                    self._put_off.clear()
            while self._guests:
                self._keep_back(*self._guests.popitem())
                yield None
        finally:
            for course in (*self._aside.values(), *self._guests.values()):
                course.decisions.close()
            self._wakeups.look_at(*self._aside, *self._guests, *self._put_off)

    def _round(self, order: Sequence[str]) -> Decisions:
        effort, work = self._cuts.new_pass(), self._cuts.new_pass()
        pace = Pace(_KEPT_BACK_IN_A_STEP)
        for name in order:
            among = len(self._ahead)
            self._ahead.remove(name)
            ration, share = Ration(effort, effort.part(among)), work.part(among)
            course = self._aside.pop(name, None)
            if self._kept.back(name):
                self._keep_back(name, course)
                if pace.due():
                    yield None
                continue
            if course is None:
                # All that has happened there until now is looked at.
                self._wakeups.take(name)
                course = self._begin(name, ration)
            else:
                course.turn.go_on(ration)
            if name not in self._owed:
                share = min(share, BEFORE_OTHERS)
            yield from self._in_turn(course, share, effort)
            work.spend(course.steps)
            yield None

    def _last(self) -> Decisions:
        """Who may need more than others should wait for comes after them, one in each round, and of a queue one in each pass.

        Where nobody waits but others that come last as well the pass does not end for them, as long as nothing happens.
        """
        while True:
            waits, told = self._anybody_waits(), self._wakeups.told
            costly = self._cuts.take_costly(self._aside.keys() | self._costly, others_wait=waits())
            if costly is None:
                return
            yield from self._comes_last(costly, waits)
            if not self._cuts.is_costly(costly.key) or self._wakeups.told != told or self._anybody_waits()():
                return
            self._costly.clear()

    def _anybody_waits(self) -> Callable[[], bool]:
        """Whether it would be of use to anybody, in whatever queue, that the pass comes to its end."""
        left = any(self._put_off.values())
        return lambda: left or bool(self._aside or self._guests or self._wakeups.pending)

    def _comes_last(self, costly: Costly, anybody_waits: Callable[[], bool]) -> Decisions:
        name = costly.queue
        # What came in between there is not through; it is begun anew, or a queue that is woken in each pass would never have its turn.
        course = self._guests.pop(name, None)
        if self._kept.back(name):
            self._keep_back(name, course)
            return
        if course is not None:
            course.leave()
        self._owed.add(name)
        self._costly.add(name)
        effort = self._cuts.new_pass()
        ration = Ration(effort, 0, costly.key, anybody_waits, costly.most)
        yield from self._in_turn(self._begin(name, ration), effort.total, effort)

    def _begin(self, name: str, ration: Ration) -> _Course:
        """All who wait there are looked at anew."""
        self._put_off.pop(name, None)
        turn = self._courses.turn(name, ration)
        return _Course(turn, self._courses.decide(turn))

    def _in_turn(self, course: _Course, share: int, effort: Effort) -> Decisions:
        """The course to its end, or until it rests because its share is used up and others wait.

        Those that are woken meanwhile come in between.
        """
        name, course.cost, between, known = course.turn.queue, 0, BEFORE_OTHERS, _NOTHING
        self._now = name
        while (yield from self._until_it_rests(course)):
            due, told = course.steps >= between, self._wakeups.told
            # Where a gang lacks members it does not wait until that is due.
            news = told != known and bool(self._wakeups.pending)
            looks = news and (due or self._kept.any_of(self._is_woken))
            if looks or (due and self._guests):
                came = yield from self._in_between(effort, due=due)
                self._now, known = name, told
                if came:
                    between, known = course.steps + BEFORE_OTHERS, _NOTHING
            if self._kept.back(name):
                self._keep_back(name, course)
                return
            if course.steps >= share:
                if self._ahead or self._aside or self._guests:
                    self._set_aside(course)
                    return
                # Nobody waits, so it need not stop.
                effort = self._cuts.new_pass()
                share = course.steps + effort.total
                course.turn.go_on(Ration(effort, effort.total))
        self._over(course)

    def _until_it_rests(self, course: _Course) -> Generator[Decision | None, None, bool]:
        """The course until it may be left for others. Returns whether it goes on; it is over otherwise."""
        for item in course.decisions:
            yield item
            course.has_yielded(item)
            if course.turn.resting:
                self._has_decided(course)
                return True
        return False

    def _in_between(self, effort: Effort, *, due: bool) -> Generator[Decision | None, None, bool]:
        """The turns of those that were woken while another one had its turn, and of those that began so and were not through.

        The latter come when that is due, or with others. Returns whether anybody came.
        """
        woken = yield from self._woken()
        if not (woken or (due and self._guests)):
            return False
        begun = deque(self._guests)
        self._wakeups.take(*woken)
        order, work = deque((yield from self._order(woken))), Effort(BEFORE_OTHERS)
        while order:
            share = max(1, work.part(len(order)))
            work.spend((yield from self._guest(order.popleft(), share, effort)))
            yield None
        # One of them goes on at any rate, however many are woken all the time.
        while begun:
            share = max(1, work.part(len(begun)))
            work.spend((yield from self._guest(begun.popleft(), share, effort)))
            yield None
            if work.left <= 0:
                break
        return True

    def _guest(self, name: str, share: int, effort: Effort) -> Generator[Decision | None, None, int]:
        """A small turn of one that comes in between. Returns how much work that was."""
        course, ration = self._guests.pop(name, None), Ration(effort, share)
        if self._kept.back(name):
            self._keep_back(name, course)
            return 0
        self._now = name
        if course is None:
            course = self._begin(name, ration)
        else:
            course.turn.go_on(ration)
            course.cost = 0
        while (yield from self._until_it_rests(course)):
            if self._kept.back(name):
                self._keep_back(name, course)
                return course.steps
            if course.steps >= share:
                self._set_aside(course)
                return course.steps
        self._over(course)
        return course.steps

    def _has_decided(self, course: _Course) -> None:
        if course.turn.first_decided:
            self._kept.decided(course.turn.queue)

    def _set_aside(self, course: _Course) -> None:
        name = course.turn.queue
        (self._aside if name in self._owed else self._guests)[name] = course

    def _keep_back(self, name: str, course: _Course | None) -> None:
        """Leaves a queue, which rests where it has begun, to a later round or the next pass."""
        if course is not None:
            course.leave()
            self._owed.discard(name)
        # Whom it waits for would not come any sooner.
        self._put_off[name] = False

    def _over(self, course: _Course) -> None:
        self._has_decided(course)
        self._owed.discard(course.turn.queue)
        if course.turn.put_off:
            self._put_off[course.turn.queue] = course.turn.waits

    def _woken(self) -> Steps[list[str]]:
        """Who waits and would not come to its turn otherwise before this round ends."""
        found: list[str] = []
        for some in batched(tuple(self._wakeups.pending), _LOOKED_AT_IN_A_STEP):
            found += filter(self._has_no_turn, some)
            if len(some) == _LOOKED_AT_IN_A_STEP:
                yield
        return found

    def _is_woken(self, name: str) -> bool:
        return name in self._wakeups.pending and self._has_no_turn(name)

    def _has_no_turn(self, name: str) -> bool:
        under_way = name in self._ahead or name in self._aside or name in self._guests
        return not under_way and name != self._now
