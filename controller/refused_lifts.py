"""Pods whose lift the API server refuses for now, and how long each is left alone before it is asked about.

What refuses one is as a rule a webhook or a policy that others of its namespace have to pass too, so these are asked about first.
"""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

from controller.asked_groups import AskedGroups
from controller.flight import RETRY_MAX_S, Key, gang_of
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger

FIRST_S = 30.0
MAX_S = 300.0
_EARLY_S = 0.01
"""A timer may fire by less than this before its time."""
_AT_ANY_TIME = float("-inf")
_OTHERS_ASKED = "it is being found out whether the lifts of others of its group would be taken in"
_NUMBERS = re.compile(r"\d+")
_TRUSTED_AT_ONCE = 500
"""Pods that are decided on without a question, for one lift that was stored; they take a millisecond or two."""


@dataclass(slots=True)
class _Refusal:
    lift: Lift
    """What was decided on it last."""
    why: str
    until: float
    """Until when it is left alone, whoever asks for it earlier."""
    held: bool = True
    """Whether the planner holds it; else it may be lifted."""
    next_s: float = FIRST_S
    """How long the next time lasts."""
    anyway: bool = False
    """Whether it may be lifted though that was denied."""
    put_off: bool = False
    """Whether the last question about it was to be put again, which says nothing about the lift."""


class RefusedLifts:
    """Who is in here, and whom the planner holds for it, is changed in one place: neither is remembered without the other."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._planner: Planner | None = None
        self._refusals: dict[Key, _Refusal] = {}
        self._pods: Counter[str] = Counter()
        """How many of each namespace are in here."""
        self._doubtful: dict[str, str] = {}
        """Namespaces of which no lift was stored since one was given up, and why that was."""
        self._untried: dict[str, dict[Key, None]] = {}
        """By namespace, those who are in here for the sake of others alone."""
        self._cleared: dict[str, set[Key]] = {}
        """By namespace, whose lift would be taken in, by what was answered since one was given up."""
        self._anyway: dict[str, tuple[float, str]] = {}
        """Until when no other one of a namespace is to be lifted against the answer, but of this gang."""
        self._groups = AskedGroups()

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
        for kept in (self._refusals, self._doubtful, self._untried, self._cleared, self._anyway):
            kept.clear()
        self._pods.clear()
        self._groups.clear()

    def doubts(self, key: Key, lift: Lift) -> bool:
        """Whether a lift may be refused: its last one was, or the last one of its namespace given up. Or it goes with such."""
        if self._groups.is_asked_about(gang_of(lift)):
            return True
        return (key in self._refusals or key[0] in self._doubtful) and not self._is_cleared(key)

    def ask(self, key: Key, lift: Lift) -> None:
        """Has a pod held until it is known whether its lift would be taken in. Only within a running event loop."""
        refusal = self._refusals.get(key)
        if refusal is None:
            why = self._doubtful.get(key[0], _OTHERS_ASKED)
            refusal = self._enter(key, _Refusal(lift, why, asyncio.get_running_loop().time()))
            self._untried.setdefault(key[0], {})[key] = None
        refusal.lift, refusal.anyway, refusal.put_off = lift, False, False
        (self._groups.wait if self._is_cleared(key) else self._groups.ask)(gang_of(lift), key)
        self._hold(key, refusal)

    def doubt(self, namespace: str, why: str) -> None:
        """A lift of a namespace was given up after it had held quota for long: nobody else of it is to do so.

        What was answered before about others may not hold any more.
        """
        self._doubtful[namespace] = why
        self._cleared.pop(namespace, None)

    def refuse(self, key: Key, lift: Lift, why: str, not_before: float) -> float:
        """Has a pod held for this reason. Returns for how many seconds; each time in a row for longer.

        At least until that time of the event loop, and only within a running one.
        """
        refusal = self._refusals.get(key) or self._enter(key, _Refusal(lift, "", 0.0))
        self._tried(key)
        self._cleared.get(key[0], set()).discard(key)
        now, news = asyncio.get_running_loop().time(), not refusal.held or _said(refusal.why) != _said(why)
        refusal.lift, refusal.why, refusal.anyway, refusal.put_off = lift, why, False, False
        refusal.until = max(now + refusal.next_s, not_before)
        refusal.next_s = min(MAX_S, 2 * refusal.next_s)
        self._hold(key, refusal)
        if news:
            self._ledger.wakeups.look_at(lift.queue)
        self._accept(self._groups.answered(key, gang_of(lift), taken_in=False))
        return refusal.until - now

    def put_off(self, key: Key, asked_s: float) -> float | None:
        """The server wants to be asked again after so long. Returns the seconds; None for one that wants that again and again."""
        refusal = self._refusals[key]
        if refusal.put_off:
            return None
        wait_s, refusal.put_off = max(RETRY_MAX_S, asked_s), True
        refusal.until = asyncio.get_running_loop().time() + wait_s
        self._accept(self._groups.answered(key, gang_of(refusal.lift), taken_in=False))
        return wait_s

    def goes_anyway(self, key: Key) -> bool:
        """Whether a pod is to be lifted though that was denied: somebody may deny dry runs, and nothing else.

        It is the turn of one that is left alone for as long as anybody is; of one of a namespace in half a minute, with the others
        of its gang, until that has turned out to be so.
        """
        refusal, now = self._refusals[key], asyncio.get_running_loop().time()
        until, gang = self._anyway.get(key[0], (now, ""))
        with_others = gang and gang == gang_of(refusal.lift)
        if refusal.next_s < MAX_S or (now < until and not with_others):
            return False
        if until != _AT_ANY_TIME:
            self._anyway[key[0]] = now + FIRST_S, gang_of(refusal.lift)
        refusal.anyway = True
        return True

    def clear(self, key: Key) -> None:
        """The lift of a pod would be taken in: it is decided on, together with others of its group that are asked about too."""
        self._tried(key)
        self._cleared.setdefault(key[0], set()).add(key)
        self._accept(self._groups.answered(key, gang_of(self._refusals[key].lift), taken_in=True))

    def stored(self, key: Key) -> None:
        """A lift was stored: others of its namespace, that were not refused themselves, will be as well."""
        namespace, refusal = key[0], self._refusals.get(key)
        if refusal is not None and refusal.anyway:
            self._anyway[namespace] = _AT_ANY_TIME, ""
        self._doubtful.pop(namespace, None)
        self.forget(key)
        for other in list(islice(self._untried.get(namespace, ()), _TRUSTED_AT_ONCE)):
            self.forget(other)
            self._wake(other)

    def lift(self, key: Key) -> Lift | None:
        """What is to be asked about now; None for nothing."""
        refusal = self._refusals.get(key)
        return None if refusal is None or not refusal.held or self._is_cleared(key) else refusal.lift

    def left_s(self, key: Key) -> float:
        """For how many seconds a pod is to be left alone. Only within a running event loop."""
        refusal = self._refusals.get(key)
        left_s = 0.0 if refusal is None else refusal.until - asyncio.get_running_loop().time()
        return left_s if left_s > _EARLY_S else 0.0

    def forget(self, key: Key) -> None:
        """Its lift came to an end, or the pod is gone. Fine for one that nobody has refused."""
        refusal = self._refusals.pop(key, None)
        if refusal is None:
            return
        self._tried(key)
        namespace = key[0]
        self._cleared.get(namespace, set()).discard(key)
        self._pods[namespace] -= 1
        if not self._pods[namespace]:
            del self._pods[namespace]
            for kept in (self._doubtful, self._cleared, self._anyway):
                kept.pop(namespace, None)
        if self._planner is not None:
            self._planner.accept(key[1])
        self._accept(self._groups.answered(key, gang_of(refusal.lift), taken_in=False))

    def _enter(self, key: Key, refusal: _Refusal) -> _Refusal:
        self._pods[key[0]] += 1
        self._refusals[key] = refusal
        return refusal

    def _tried(self, key: Key) -> None:
        untried = self._untried.get(key[0], {})
        if key in untried:
            del untried[key]
            if not untried:
                del self._untried[key[0]]

    def _is_cleared(self, key: Key) -> bool:
        return key in self._cleared.get(key[0], ())

    def _hold(self, key: Key, refusal: _Refusal) -> None:
        refusal.held = True
        if self._planner is not None:
            self._planner.refuse(key[1], refusal.why)

    def _accept(self, keys: list[Key]) -> None:
        for key in keys:
            if (refusal := self._refusals.get(key)) is not None:
                refusal.held = False
                if self._planner is not None:
                    self._planner.accept(key[1])
                self._wake(key)

    def _wake(self, key: Key) -> None:
        pod = self._ledger.observed(key[1])
        if pod is not None:
            self._ledger.wakeups.help(self._ledger.attribution(pod).queue)


def _said(why: str) -> str:
    """What an answer says, but for times and ports, which are others in each answer of the same kind."""
    return _NUMBERS.sub("", why)
