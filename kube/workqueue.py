"""Keys that wait to be worked on: each by one worker at a time, failed ones again later, and no key held up by another.

The idea is that of controller-runtime's work queue. A slot is held only while the work on a key runs, never while the key
waits to be tried again. Keys are dealt out in turn over their lanes (namespaces, as a rule). A lane whose last work failed has
a single slot, and one of a pool of its own, so that what hangs there takes none from the others. So has, where that is wanted,
a lane of which nothing has come back yet: nobody knows whether its works hang.

A slot is lent for SLOW_S. What takes longer holds none from then on, and its lane has its slots in another pool until a work of
it comes back in time: lanes that are slow, or that begin to hang, share with each other, and others get the slot back soon.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SLOW_S = 0.5
"""Work that takes longer is slow. Most requests take a hundredth of that; one that hangs is given up after seconds."""

_ORDERLY, _SLOW, _FAILING, _HANGING, _UNHEARD, _LENT = range(6)
"""The pools of slots, see WorkQueue; lanes that fail slowly hang. What had a slot for too long is counted last, and begun nowhere."""
_LATE = {_ORDERLY: _SLOW, _FAILING: _HANGING}
"""For each pool that lends its slots the one in which slow lanes have theirs."""

_SLACK = 64
_FEW = 64
"""So many keys of a lane are in a plain dictionary."""
_TAKEN_AT_ONCE = 1000
"""So many keys become ready before others come to their turn: a hundred thousand may be due at once when leading begins."""
TICK_S = 0.001
"""A timer may fire a hair before the clock shows its time; without this the queue would spin until it does."""

IDLE = -1.0
"""Returned by work that is done with a key and has tried nothing that could fail: its lane stays what it was."""

Work = Callable[[K], Awaitable[float | None]]
"""Works on a key. Returns the seconds after which it has to be tried again, None when it is done with.

An exception ends the queue: whoever expects one catches it here.
"""


@dataclass(slots=True)
class _Job:
    """Work under way: where it counts, whether it is slow, when the key was asked for again, and whether it was taken off."""

    pool: int
    slow: bool = False
    again_at: float | None = None
    discarded: bool = False

    def discard(self) -> None:
        """The key is taken off: it is not tried again."""
        self.again_at, self.discarded = None, True


class _Line(Generic[K]):
    """The ready keys of one lane in the order in which they came; those that failed last come after all others.

    There may be as many lanes as keys. So few keys are in plain dictionaries, through which a garbage collection goes in no time,
    and many are not: to find the first one of a dictionary costs as many steps as were taken from its beginning.
    """

    __slots__ = ("fresh", "retried")

    def __init__(self) -> None:
        self.fresh: dict[K, None] = {}
        self.retried: dict[K, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self.fresh or key in self.retried

    def __bool__(self) -> bool:
        return bool(self.fresh or self.retried)

    def __len__(self) -> int:
        return len(self.fresh) + len(self.retried)

    def put(self, key: K, *, failed: bool) -> None:
        """Puts a key at its end."""
        if failed:
            self.retried[key] = None
            self.retried = _in_order(self.retried)
        else:
            self.fresh[key] = None
            self.fresh = _in_order(self.fresh)

    def take(self) -> K:
        """The first key, which is in here no more."""
        keys = self.fresh or self.retried
        key = next(iter(keys))
        del keys[key]
        return key

    def drop(self, key: K) -> None:
        """Takes a key out, wherever it is."""
        self.fresh.pop(key, None)
        self.retried.pop(key, None)


def _in_order(keys: dict[K, None]) -> dict[K, None]:
    return keys if len(keys) <= _FEW or isinstance(keys, OrderedDict) else OrderedDict(keys)


class WorkQueue(Generic[K]):
    """Each key is in here at most once; one that is added while it is worked on is worked on once more afterwards.

    `slots` works run side by side, at most `per_lane` of them in one lane; lanes that failed last have as many slots again
    for all of them together. `lane` says which lane a key belongs to, by default each to one of its own.
    With `unheard`, a lane has one of so many further slots until a work of it has come back: as long as no more lanes than that
    hang from the first, they take nothing from any other one. Without, each is trusted from the first.

    Slow lanes have as many slots again, and so have slow ones of those that failed last; each work that is begun there holds one
    to its end. So works that all take T seconds at the most are no more than slots * (T / SLOW_S + 1) at once, and as many that
    failed last: so many when all begins to hang in one moment, and `slots` of each kind as soon as that is known. A single slot
    is lent for as long as a work takes: there they come one after the other.
    """

    def __init__(
        self,
        work: Work[K],
        *,
        slots: int,
        per_lane: int | None = None,
        unheard: int | None = None,
        lane: Callable[[K], Hashable] | None = None,
    ) -> None:
        self._work = work
        self._slots = (slots, slots, slots, slots, unheard or 0, 0)
        """How many there are in each pool."""
        self._trusting = unheard is None
        self._lending = slots > 1
        self._per_lane = per_lane or slots
        self._lane = lane or _itself
        self._ready: dict[Hashable, _Line[K]] = {}
        """Lane -> its keys that may be worked on now."""
        self._turns: tuple[OrderedDict[Hashable, None], ...] = tuple(OrderedDict() for _ in self._slots)
        """The lanes of each pool that have ready keys and may have a further slot."""
        self._running: Counter[Hashable] = Counter()
        self._used = [0] * len(self._slots)
        self._failing: set[Hashable] = set()
        self._slow: set[Hashable] = set()
        self._heard: set[Hashable] = set()
        """Lanes of which a work has come back."""
        self._retries: set[K] = set()
        self._keys: Counter[Hashable] = Counter()
        """How many keys of each lane are in here, in whatever state."""
        self._busy: dict[K, _Job] = {}
        self._later: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        """What is in `_later`, and entries that it has overtaken."""
        self._numbers = count()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        """How many keys wait, for a slot or for their time, or are worked on."""
        return self._keys.total()

    def __contains__(self, key: K) -> bool:
        """Whether the key waits or is worked on."""
        return key in self._later or key in self._busy or key in self._ready.get(self._lane(key), ())

    def add(self, key: K, delay_s: float = 0.0) -> None:
        """Has the key worked on after `delay_s` seconds, or earlier where that was asked for already.

        Only within a running event loop.
        """
        self._add(key, asyncio.get_running_loop().time() + delay_s)
        self._wake.set()

    def discard(self, key: K) -> None:
        """Takes the key off; what is worked on now goes on and is not tried again."""
        lane = self._lane(key)
        if key in self._busy:
            self._busy[key].discard()
        elif self._later.pop(key, None) is not None or key in self._ready.get(lane, ()):
            if lane in self._ready:
                self._ready[lane].drop(key)
            self._retries.discard(key)
            self._gone(lane)

    def clear(self) -> None:
        """Takes all keys off; what is worked on now goes on. A hundred thousand cost no more than to free them."""
        for job in self._busy.values():
            job.discard()
        for turns in self._turns:
            turns.clear()
        for held in (self._ready, self._later, self._timers):
            held.clear()
        self._retries &= self._busy.keys()
        self._keys = Counter(map(self._lane, self._busy))
        self._running = Counter(dict(self._keys))
        for lanes in (self._failing, self._slow, self._heard):
            lanes.intersection_update(self._keys)

    async def run(self) -> None:
        """Works until cancelled; what is under way then is cancelled too. Keys that wait stay for a further run."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._wake.clear()
                self._take_due(loop.time() + TICK_S)
                while (found := self._next()) is not None:
                    tasks.create_task(self._serve(*found), name=f"work on {found[0]}")
                await self._sleep()

    async def _sleep(self) -> None:
        """Returns when something was added, or has made way for what waits, or when the next key is due."""
        loop = asyncio.get_running_loop()
        timer = loop.call_at(self._timers[0][0], self._wake.set) if self._timers else None
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _add(self, key: K, due: float) -> None:
        lane, job = self._lane(key), self._busy.get(key)
        if job is not None:
            job.again_at = due if job.again_at is None else min(job.again_at, due)
            job.discarded = False
            return
        if key in self._ready.get(lane, ()) or self._later.get(key, due + 1) <= due:
            return
        if key not in self._later:
            self._keys[lane] += 1
        self._later[key] = due
        heappush(self._timers, (due, next(self._numbers), key))
        if len(self._timers) > 2 * len(self._later) + _SLACK:
            self._timers = [(at, next(self._numbers), pending) for pending, at in self._later.items()]
            heapify(self._timers)

    def _take_due(self, now: float) -> None:
        """Makes ready what is due by now, or a part of it: what is left is due in the next round of the loop."""
        for _ in range(_TAKEN_AT_ONCE):
            if not self._timers or self._timers[0][0] > now:
                return
            due, _, key = heappop(self._timers)
            if self._later.get(key) == due:
                del self._later[key]
                lane = self._lane(key)
                line = self._ready.get(lane)
                if line is None:
                    line = self._ready[lane] = _Line()
                line.put(key, failed=key in self._retries)
                self._settle(lane)

    def _settle(self, lane: Hashable) -> None:
        """Puts a lane where it belongs: in turn while it has ready keys and may have a further slot."""
        if not self._ready.get(lane):
            self._ready.pop(lane, None)
        pool = _ORDERLY if self._trusting or lane in self._heard else _UNHEARD
        if lane in self._failing:
            pool = _FAILING
        most = self._per_lane if pool == _ORDERLY else 1
        if lane in self._slow:
            pool = _LATE.get(pool, pool)
        may_begin = lane in self._ready and self._running[lane] < most
        if may_begin and lane in self._turns[pool]:
            return
        for turns in self._turns:
            if lane in turns:
                del turns[lane]
        if may_begin:
            self._turns[pool][lane] = None

    def _next(self) -> tuple[K, Hashable, _Job] | None:
        """The next key to work on, and its lane; None while nothing can be begun."""
        for pool, turns in enumerate(self._turns):
            if turns and self._used[pool] < self._slots[pool]:
                lane = next(iter(turns))
                turns.move_to_end(lane)
                key = self._ready[lane].take()
                job = self._busy[key] = _Job(pool)
                self._running[lane] += 1
                self._used[pool] += 1
                self._settle(lane)
                return key, lane, job
        return None

    async def _serve(self, key: K, lane: Hashable, job: _Job) -> None:
        again_s: float | None = None
        loop = asyncio.get_running_loop()
        timer = loop.call_later(SLOW_S, self._slowed, lane, job) if self._lending else None
        try:
            again_s = await self._work(key)
        finally:
            if timer is not None:
                timer.cancel()
            self._ended(key, lane, job, again_s)

    def _slowed(self, lane: Hashable, job: _Job) -> None:
        """Others may have the slot of work that takes long."""
        job.slow = True
        if job.pool in _LATE:
            self._used[job.pool] -= 1
            job.pool = _LENT
            self._used[job.pool] += 1
        self._slow.add(lane)
        self._settle(lane)
        self._wake.set()

    def _ended(self, key: K, lane: Hashable, job: _Job, again_s: float | None) -> None:
        del self._busy[key]
        self._used[job.pool] -= 1
        self._running[lane] -= 1
        if again_s is None:
            self._failing.discard(lane)
            self._heard.add(lane)
            self._retries.discard(key)
        elif again_s >= 0:
            self._failing.add(lane)
            self._retries.add(key)
            # Work that failed is not repeated earlier because somebody asked: that is what the waiting is for.
            job.again_at = None if job.discarded else asyncio.get_running_loop().time() + again_s
        if again_s != IDLE and not job.slow:
            self._slow.discard(lane)
        if job.again_at is not None:
            self._add(key, job.again_at)
        else:
            self._retries.discard(key)
        self._gone(lane)
        if job.again_at is not None or any(self._turns):
            # Else nobody waits for the slot, and the next time is the one that is waited for already.
            self._wake.set()

    def _gone(self, lane: Hashable) -> None:
        """One key less in a lane; one that is empty is forgotten."""
        self._keys[lane] -= 1
        if not self._keys[lane]:
            del self._keys[lane], self._running[lane]
            for lanes in (self._failing, self._slow, self._heard):
                lanes.discard(lane)
        self._settle(lane)


def _itself(key: Hashable) -> Hashable:
    return key
