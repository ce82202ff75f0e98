"""Pods whose lift the API server refuses for now, and how long each is left alone before it is tried anew."""

import asyncio

from controller.flight import Key
from core.plan.lift import Planner

FIRST_S = 30.0
MAX_S = 300.0
_EARLY_S = 0.01
"""A timer may fire by less than this before its time."""


class RefusedLifts:
    """Who is in here, and whom the planner holds for it, is changed in one place: neither is remembered without the other."""

    def __init__(self) -> None:
        self._planner: Planner | None = None
        self._waits_s: dict[Key, float] = {}
        """How long the next time lasts."""
        self._until: dict[Key, float] = {}
        """Until when each is left alone, whoever asks for it earlier."""

    def __contains__(self, key: Key) -> bool:
        return key in self._waits_s

    def __len__(self) -> int:
        return len(self._waits_s)

    def begin(self, planner: Planner) -> None:
        """From now on this planner is told."""
        self._planner = planner

    def end(self) -> None:
        """Forgets all of them, and whom to tell."""
        self._planner = None
        self._waits_s.clear()
        self._until.clear()

    def refuse(self, key: Key, why: str, not_before: float) -> float:
        """Has a pod held for this reason. Returns for how many seconds; each time in a row for longer.

        At least until that time of the event loop, and only within a running one.
        """
        wait_s, now = self._waits_s.get(key, FIRST_S), asyncio.get_running_loop().time()
        self._waits_s[key] = min(MAX_S, 2 * wait_s)
        self._until[key] = max(now + wait_s, not_before)
        if self._planner is not None:
            self._planner.refuse(key[1], why)
        return self._until[key] - now

    def left_s(self, key: Key) -> float:
        """For how many seconds a pod is to be left alone. Only within a running event loop."""
        until = self._until.get(key)
        left_s = 0.0 if until is None else until - asyncio.get_running_loop().time()
        return left_s if left_s > _EARLY_S else 0.0

    def allow(self, key: Key) -> None:
        """Has a pod tried anew; should it be refused again, that was not the first time."""
        if self._planner is not None:
            self._planner.accept(key[1])

    def forget(self, key: Key) -> None:
        """Its lift came to an end, or the pod is gone. Fine for one that nobody has refused."""
        self._until.pop(key, None)
        if self._waits_s.pop(key, None) is not None:
            self.allow(key)
