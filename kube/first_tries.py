"""Who may try next where much has failed: what was never tried in its turn, what has failed after pauses that grow.

One object that is refused, or thousands of them, must not keep from being tried what has nothing to do with them; and where
everything fails it is no use to try each of thousands again and again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Generic, TypeVar

from kube import errors
from kube.backoff import Backoff
from kube.workqueue import TICK_S, WorkQueue

K = TypeVar("K", bound=Hashable)

TURN_S: Final = 1.0
"""Between two keys that have their first turn in a lane where much has failed."""

FORBIDDEN_S: Final = 15.0
FORBIDDEN_MOST_S: Final = 300.0
"""What is forbidden is seldom allowed soon, and servers name no time for it."""

_REPEATS = 4
"""Keys that are tried again between two pauses: among them may be one that is sound by now."""

_FORGOTTEN_S = 600.0
_TICK_S = 2 * TICK_S
"""A time that is reached within this is reached: a work queue may come back TICK_S early, and a hair more since it rounds otherwise.

Were it asked to come back after exactly that, it would do so at once, and again, until the clock shows another time.
"""

_AT_ONCE = 100
_FLOW_S = 0.1
"""Where something works again, so many keys are let through in so much time: should it fail again, few have to go back."""


@dataclass(slots=True)
class _Lane(Generic[K]):
    """Which keys have failed since anything worked, as far as that matters, and who waits for what."""

    backoff: Backoff
    forbidden: Backoff
    failed: set[K] = field(default_factory=set)
    failed_at: float = 0.0
    """When something failed last."""
    asked_until: float = 0.0
    """The server wants to be left alone."""
    paused_until: float = 0.0
    """Nothing is repeated."""
    repeats: int = 0
    """Since the last pause."""
    is_forbidden: bool = False
    """Whether that was the last failure."""
    line: OrderedDict[K, None] = field(default_factory=OrderedDict)
    """The keys that were never tried and wait for their turn."""
    turn: K | None = None
    """The one that has it."""
    turn_at: float = 0.0
    """No other one has it before that."""

    def rests_s(self) -> float:
        """For how many seconds nothing is repeated."""
        return max(_left_s(self.asked_until), _left_s(self.paused_until))

    def pause(self) -> None:
        """Nothing is repeated for a while, from now on."""
        backoff = self.forbidden if self.is_forbidden else self.backoff
        self.paused_until, self.repeats = _loop_time() + backoff.next_delay(), 0


class FirstTries(Generic[K]):
    """Says of each lane when a key may be tried; only within a running event loop.

    A lane rests for as long as the server asks. Else failures are put down to the keys that failed, unless more than `patience`
    of them do and nothing works in between. From then on, until something works, keys are tried again only after pauses that
    grow; and those that were never tried, which may be sound, have their turn one after the other, TURN_S apart. They stand in
    line here until they are handed to `begin`, while `run` runs: to ask each of thousands once a second would be much work.
    """

    def __init__(self, rng: Random, begin: Callable[[K], None], *, patience: int) -> None:
        self._rng = rng
        self._begin = begin
        self._patience = patience
        self._lanes: dict[Hashable, _Lane[K]] = {}
        self._ushers = WorkQueue(self._usher, slots=1)

    async def run(self) -> None:
        """Lets through whose turn it is until cancelled."""
        await self._ushers.run()

    def waits(self, lane: Hashable, key: K) -> bool:
        """Whether the key, which was never tried, has to wait for its turn. Then it stands in line, and is begun later."""
        if (one := self._lanes.get(lane)) is None:
            return False
        asked, has_turn = _left_s(one.asked_until) > 0, one.turn == key
        if not asked and (has_turn or not self._fails(one)):
            return False
        one.line[key] = None
        if has_turn:
            one.turn = None
            one.line.move_to_end(key, last=False)
        self._ushers.add(lane, max(_left_s(one.turn_at), _left_s(one.asked_until)))
        return True

    def stands_in_line(self, lane: Hashable, key: K) -> bool:
        """Whether it does."""
        return lane in self._lanes and key in self._lanes[lane].line

    def left(self, lane: Hashable, key: K) -> None:
        """The key has had its turn, or needs none any more."""
        if (one := self._lanes.get(lane)) is None:
            return
        one.line.pop(key, None)
        if one.turn == key:
            one.turn = None

    def repeats_in_s(self, lane: Hashable) -> float:
        """For how many seconds nothing is to be repeated; with 0 one key is, now."""
        one = self._lanes.get(lane)
        if one is None or (left_s := one.rests_s()) > 0:
            return 0.0 if one is None else left_s
        if self._fails(one):
            one.repeats += 1
            if one.repeats == _REPEATS:
                # They may hang: the next ones do not wait until that is known.
                one.pause()
        return 0.0

    def failed(self, lane: Hashable, key: K, error: errors.KubeError) -> float:
        """Takes in a failure. Returns for how many seconds nothing is to be repeated."""
        now = _loop_time()
        if (one := self._lanes.get(lane)) is None:
            self._forget(now)
            slow = Backoff(self._rng, base_s=FORBIDDEN_S, cap_s=FORBIDDEN_MOST_S)
            one = self._lanes[lane] = _Lane(Backoff(self._rng), slow)
        if not self._fails(one):
            one.failed.add(key)
            if self._fails(one):
                one.turn_at = now + TURN_S
        one.failed_at, one.is_forbidden = now, isinstance(error, errors.Forbidden)
        if asked_s := errors.retry_after_s(error):
            one.asked_until = max(one.asked_until, now + asked_s)
        elif self._fails(one) and not _left_s(one.paused_until):
            # Keys that have their first turn meanwhile prolong no pause: others may be sound by the end of it.
            one.pause()
        return one.rests_s()

    def succeeded(self, lane: Hashable) -> None:
        """Takes in that something worked there: all are tried again, those that stand in line some at a time.

        Not while the server wants to be left alone, of which what was sent before that knew nothing.
        """
        if (one := self._lanes.get(lane)) is None:
            return
        if not one.line and not _left_s(one.asked_until):
            del self._lanes[lane]
            return
        one.failed.clear()
        one.backoff.reset()
        one.forbidden.reset()
        one.paused_until = one.turn_at = 0.0
        self._ushers.add(lane)

    def _fails(self, one: _Lane[K]) -> bool:
        return len(one.failed) > self._patience

    async def _usher(self, lane: Hashable) -> float | None:
        """Lets one key through, or some where there is no reason against it. Returns when the next ones have their turn."""
        one = self._lanes.get(lane)
        if one is None or not one.line:
            return None
        if (wait_s := max(_left_s(one.turn_at), _left_s(one.asked_until))) > 0:
            return wait_s
        if not self._fails(one):
            for _ in range(min(_AT_ONCE, len(one.line))):
                self._begin(one.line.popitem(last=False)[0])
            return _FLOW_S
        one.turn_at = _loop_time() + TURN_S
        if one.turn is None:
            # A store that hangs with it is not asked by a second one meanwhile.
            one.turn = one.line.popitem(last=False)[0]
            self._begin(one.turn)
        return TURN_S

    def _forget(self, now: float) -> None:
        for name, one in list(self._lanes.items()):
            last = max(one.failed_at, one.asked_until, one.paused_until, one.turn_at)
            stale = last < now - _FORGOTTEN_S
            if stale and not one.line and one.turn is None:
                del self._lanes[name]


def _left_s(until: float) -> float:
    left_s = until - _loop_time()
    return left_s if left_s > _TICK_S else 0.0


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
