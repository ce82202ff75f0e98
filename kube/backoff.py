"""Waiting times after failures: growing, bounded, and different in each process."""

from random import Random


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
