"""Pods whose lift the API server refuses for now, and how long each is left alone before it is tried anew."""

import asyncio
from typing import NamedTuple

from controller.flight import Key
from core.plan.lift import Planner

FIRST_S = 30.0
MAX_S = 300.0
_EARLY_S = 0.01
"""A timer may fire by less than this before its time."""


class _Refusal(NamedTuple):
    next_s: float
    """How long the next time lasts."""
    until: float
    """Until when it is left alone, whoever asks for it earlier."""


class RefusedLifts:
    """Who is in here, and whom the planner holds for it, is changed in one place: neither is remembered without the other."""

    def __init__(self) -> None:
        self._planner: Planner | None = None
        self._refusals: dict[Key, _Refusal] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._refusals

    def __len__(self) -> int:
        return len(self._refusals)

    def begin(self, planner: Planner) -> None:
        """From now on this planner is told."""
        self._planner = planner

    def end(self) -> None:
        """Forgets all of them, and whom to tell."""
        self._planner = None
        self._refusals.clear()

    def refuse(self, key: Key, why: str, not_before: float) -> float:
        """Has a pod held for this reason. Returns for how many seconds; each time in a row for longer.

        At least until that time of the event loop, and only within a running one.
        """
        last, now = self._refusals.get(key), asyncio.get_running_loop().time()
        wait_s = FIRST_S if last is None else last.next_s
        until = max(now + wait_s, not_before)
        self._refusals[key] = _Refusal(min(MAX_S, 2 * wait_s), until)
        if self._planner is not None:
            self._planner.refuse(key[1], why)
        return until - now

    def left_s(self, key: Key) -> float:
        """For how many seconds a pod is to be left alone. Only within a running event loop."""
        refusal = self._refusals.get(key)
        left_s = 0.0 if refusal is None else refusal.until - asyncio.get_running_loop().time()
        return left_s if left_s > _EARLY_S else 0.0

    def allow(self, key: Key) -> None:
        """Has a pod tried anew; should it be refused again, that was not the first time."""
        if self._planner is not None:
            self._planner.accept(key[1])

    def forget(self, key: Key) -> None:
        """Its lift came to an end, or the pod is gone. Fine for one that nobody has refused."""
        if self._refusals.pop(key, None) is not None:
            self.allow(key)
