"""Bookings of lifts that are taken back together."""

from collections import deque
from collections.abc import Callable, Collection

from controller.caches import Caches
from core.plan.decision import Lift
from core.steps import Steps

_IN_ONE_STEP = 8
"""So many are booked anew before others come to their turn."""


class ReturnedLifts:
    """Members of groups that are to be decided on again: their bookings are kept until the next pass begins.

    A gang that is in but for these comes before all others, in a pass that begins with them. In the middle of one it may
    have had its turn, and others that come after it would get what it lacks.
    """

    def __init__(self, caches: Caches, begin_pass: Callable[[], None]) -> None:
        self._caches = caches
        self._begin_pass = begin_pass
        self._kept: deque[Lift] = deque()

    def take(self, lift: Lift) -> None:
        """Has the booking of a lift taken back: at once, or that of a member of a group before the next pass."""
        if lift.pod.group_key:
            self.keep(lift)
        else:
            self.retract((lift,))

    def keep(self, lift: Lift) -> None:
        """Has the booking of a lift taken back before the next pass."""
        self._kept.append(lift)
        # A pass that goes on because nobody waits ends for it.
        self._caches.ledger.wakeups.look_at(lift.queue)
        self._begin_pass()

    def clear(self) -> None:
        """Keeps none any more."""
        self._kept.clear()

    async def give_back(self) -> None:
        """Takes back those that are kept, in slices; nobody decides meanwhile."""
        if self._kept:
            await self._caches.turns.finish(self._giving_back())

    def _giving_back(self) -> Steps[None]:
        while self._kept:
            self.retract([self._kept.popleft() for _ in range(min(_IN_ONE_STEP, len(self._kept)))])
            yield

    def retract(self, lifts: Collection[Lift]) -> None:
        """Takes these back at once. Many are booked anew by `Ledger.settle`, and nothing is decided before."""
        ledger = self._caches.ledger
        ledger.retract_all(lift.lifted for lift in lifts)
        ledger.wakeups.look_at(*(lift.queue for lift in lifts))
