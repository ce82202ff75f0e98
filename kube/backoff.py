"""Waiting times after failures: growing, bounded, and different in each process.

A setting that somebody else changes again and again is put right at a pace that slows down.
"""

from random import Random
from typing import Final

# Of a dispute.
FIRST_S: Final = 1.0
MOST_S: Final = 300.0
CALM_S: Final = 60.0
"""Whoever has left it alone for so long is corrected at once again."""


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
