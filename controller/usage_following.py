"""What pods use and wait for over time, followed by every replica: whoever leads next has seen what the last one could not write down."""

import asyncio
from collections.abc import Callable
from typing import Final

from controller.caches import Caches
from core.objects import Pod, Queue
from core.steps import Pace, Steps
from core.usage.courses import Courses
from core.usage.seen import concerns, quota_of, sight_of, sight_of_ended

_SECOND: Final = 1_000_000
_IN_A_STEP: Final = 20


class UsageFollower:
    """Follows the books, subscribed after them. `now` is the wall clock in microseconds since 1970."""

    def __init__(self, caches: Caches, now: Callable[[], int]) -> None:
        self.courses = Courses()
        self.settled = asyncio.Event()
        """Set when all pods are charged for what they are, and for what they were before this process began."""
        self._caches = caches
        self._clock = now
        self._ended_before: dict[str, Pod] = {}
        caches.ledger.follow(self._entry_changed)
        caches.pods.subscribe(self._pod_changed)
        caches.queues.subscribe(self._queue_changed)

    def now(self) -> int:
        """Seconds since 1970."""
        return self._clock() // _SECOND

    async def run(self) -> None:
        """Settles what was there before this process; from then on everything is followed as it comes."""
        await self._caches.wait_synced()
        await self._caches.settled()
        self.courses.settled = True
        await self._caches.turns.finish(self._take_ended())
        self.settled.set()

    def _entry_changed(self, uid: str) -> None:
        now = self.now()
        sight = sight_of(self._caches.ledger, uid, self.courses.charge_of(uid), now)
        if sight is not None:
            self.courses.see(uid, sight, now)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Of pods that had ended when they were first seen the books know nothing."""
        known = old is not None and new is not None and old.uid == new.uid
        if new is None or known or not (new.terminal and concerns(self._caches.ledger, new)):
            return
        if self.courses.settled:
            self._take(new)
        else:
            self._ended_before[new.uid] = new

    def _take_ended(self) -> Steps[None]:
        pace = Pace(_IN_A_STEP)
        while self._ended_before:
            if pace.due():
                yield
            self._take(self._ended_before.popitem()[1])

    def _take(self, pod: Pod) -> None:
        now = self.now()
        sight = None if self.courses.knows(pod.uid) else sight_of_ended(self._caches.ledger, pod, now)
        if sight is not None:
            self.courses.see(pod.uid, sight, now)

    def _queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        queue = new or old
        if queue is not None:
            self.courses.set_quota(queue.name, quota_of(self._caches.ledger, queue.name), self.now())
