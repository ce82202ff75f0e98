"""Pods whose lift the API server refuses for now, and how long each is left alone before it is tried anew.

What refuses one is as a rule a webhook or a policy that others of its namespace have to pass too.
"""

import asyncio
from collections import Counter
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
        self._pods: Counter[str] = Counter()
        """How many of each namespace are in here."""
        self._doubtful: dict[str, float] = {}
        """Namespaces of which no lift was stored since one was refused, and until when no other one is to be asked about."""

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
        self._pods.clear()
        self._doubtful.clear()

    def refuse(self, key: Key, why: str, not_before: float) -> float:
        """Has a pod held for this reason. Returns for how many seconds; each time in a row for longer.

        At least until that time of the event loop, and only within a running one.
        """
        last, now = self._refusals.get(key), asyncio.get_running_loop().time()
        self._pods[key[0]] += last is None
        self._doubtful.setdefault(key[0], now)
        wait_s = FIRST_S if last is None else last.next_s
        until = max(now + wait_s, not_before)
        self._refusals[key] = _Refusal(min(MAX_S, 2 * wait_s), until)
        if self._planner is not None:
            self._planner.refuse(key[1], why)
        return until - now

    def doubts(self, key: Key) -> bool:
        """Whether the lift of a pod is likely to be refused: its last one was, or the last one of its namespace."""
        return key in self._refusals or key[0] in self._doubtful

    def stored(self, namespace: str) -> None:
        """A lift of a namespace was stored: others of it, that were not refused themselves, will be as well."""
        self._doubtful.pop(namespace, None)

    def keeps_waiting(self, namespace: str) -> None:
        """Nobody of a namespace of which lifts are refused is to be asked about for a while, for that takes long."""
        if namespace in self._doubtful:
            self._doubtful[namespace] = asyncio.get_running_loop().time() + FIRST_S

    def rests(self, namespace: str) -> bool:
        """Whether nobody of a namespace is to be asked about. Only within a running event loop."""
        return self._doubtful.get(namespace, float("-inf")) > asyncio.get_running_loop().time()

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
            self._pods[key[0]] -= 1
            if not self._pods[key[0]]:
                del self._pods[key[0]]
                self._doubtful.pop(key[0], None)
            self.allow(key)
