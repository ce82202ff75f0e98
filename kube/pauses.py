"""Where nothing is tried for a while, because the API server said so or because everything there fails."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from random import Random

from kube import errors
from kube.backoff import Backoff

_FORGOTTEN_S = 600.0

_TICK_S = 0.001
"""A pause that is over within this time is over: a work queue may come back that much early."""


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
