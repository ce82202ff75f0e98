"""A setting that somebody else changes again and again: it is put right at a pace that slows down."""

from random import Random
from typing import Final

from kube.backoff import Backoff

FIRST_S: Final = 1.0
MOST_S: Final = 300.0
CALM_S: Final = 60.0
"""Whoever has left it alone for so long is corrected at once again."""


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
