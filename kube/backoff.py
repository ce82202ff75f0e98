"""Waiting times after failures: growing, bounded, and different in each process.

A setting that somebody else changes again and again is put right at a pace that slows down; and nothing is tried for a while where
the API server says so, or where everything fails.
"""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from kube import errors

# Of a dispute.
FIRST_S: Final = 1.0
MOST_S: Final = 300.0
CALM_S: Final = 60.0
"""Whoever has left it alone for so long is corrected at once again."""
_FORGOTTEN_S = 600.0
_TICK_S = 0.001
"""A pause that is over within this time is over: a work queue may come back that much early."""


class Backoff:
    """Delays that double from `base_s` to `cap_s`, each drawn at random from its upper half.

    Every delay lies in [base_s, cap_s], so a failing peer is never asked more often than each `base_s`.
    """

    def __init__(self, rng: Random, *, base_s: float = 0.8, cap_s: float = 30.0) -> None:
        self._rng = rng
        self._base_s = base_s
        self._cap_s = cap_s
        self._ceiling_s = base_s

    def next_delay(self) -> float:
        """The next delay in seconds; each call is one more failure in a row."""
        self._ceiling_s = min(self._cap_s, self._ceiling_s * 2)
        return self._rng.uniform(max(self._base_s, self._ceiling_s / 2), self._ceiling_s)

    def reset(self) -> None:
        """Starts over, after a success."""
        self._ceiling_s = self._base_s


class Dispute:
    """When one object is to be put right again. What we ourselves want otherwise than before waits for nothing."""

    def __init__(self, rng: Random) -> None:
        self._backoff = Backoff(rng, base_s=FIRST_S, cap_s=MOST_S)
        self._said: object = None
        self._at = float("-inf")
        self._until = float("-inf")

    def rests_s(self, now: float) -> float:
        """For how many seconds it is left as somebody else has it; 0 or less when it is not."""
        return self._until - now

    def rests(self, wanted: object, now: float) -> bool:
        """Whether it is left alone for now, with what is wanted at this moment."""
        return wanted == self._said and self.rests_s(now) > 0

    def looked(self, wanted: object, now: float, *, corrected: bool) -> None:
        """Takes note that it says what is wanted, and whether it had to be changed for that."""
        ours, self._said = wanted != self._said, wanted
        if not corrected:
            return
        if now - self._at >= CALM_S:
            self._backoff.reset()
        self._at = now
        if not ours:
            self._until = now + self._backoff.next_delay()


@dataclass(slots=True)
class _Pause:
    """Which keys have failed since anything worked, as far as that matters, and until when nothing is tried."""

    backoff: Backoff
    failed: set[Hashable] = field(default_factory=set)
    until: float = 0.0


class Pauses:
    """The pauses of each lane; only within a running event loop.

    A lane pauses for as long as the server asks. Else failures are put down to the keys that failed, unless more than
    `patience` of them do and nothing works in between. Then the lane pauses, longer and longer: it would be no use to try
    each of thousands.
    """

    def __init__(self, rng: Random, *, patience: int) -> None:
        self._rng = rng
        self._patience = patience
        self._pauses: dict[Hashable, _Pause] = {}

    def left_s(self, lane: Hashable) -> float:
        """For how many seconds nothing is to be tried."""
        pause = self._pauses.get(lane)
        left_s = 0.0 if pause is None else pause.until - _loop_time()
        return left_s if left_s > _TICK_S else 0.0

    def failed(self, lane: Hashable, key: Hashable, error: errors.KubeError) -> float:
        """Takes in a failure. Returns for how many seconds nothing is to be tried."""
        now = _loop_time()
        pause = self._pauses.get(lane)
        if pause is None:
            stale = [name for name, other in self._pauses.items() if other.until < now - _FORGOTTEN_S]
            for name in stale:
                del self._pauses[name]
            pause = self._pauses[lane] = _Pause(Backoff(self._rng))
        if len(pause.failed) <= self._patience:
            pause.failed.add(key)
        asked_s = errors.retry_after_s(error)
        if not asked_s:
            asked_s = pause.backoff.next_delay() if len(pause.failed) > self._patience else 0.0
        pause.until = max(pause.until, now + asked_s)
        return pause.until - now

    def succeeded(self, lane: Hashable) -> None:
        """Takes in that something worked there."""
        self._pauses.pop(lane, None)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
