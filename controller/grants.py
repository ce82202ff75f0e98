"""The binds that the hook has let through, until it is known what became of them.

As a rule the watch shows that within milliseconds. Where it does not, only the API server knows, and it is asked: nothing
is given away again that may be stored.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from controller.late_writes import STORED_LATE_S
from core.binding.binder import Binder
from core.objects import Pod
from kube import errors
from kube.backoff import Backoff
from kube.informer import GARBAGE
from kube.workqueue import WorkQueue

_LOG = logging.getLogger(__name__)

REQUEST_LIMIT_S = 34.0
"""How long the API server works on one write at most, a bind and the call of the hook in it, whatever its
`--request-timeout` is."""

HOOK_TIMEOUT_S = 5.0
"""How long it waits for the hook, unless it was told otherwise."""

_LOOK_AGAIN_S = 30.0
"""How often a bound pod is looked for that the watch does not show: it may be gone before it ever does."""

_RETRY_AFTER_CAP_S = 120.0

_SIDE_BY_SIDE = 8

Read = Callable[[Pod], Awaitable[Pod | None]]
"""The pod of the same namespace and name as it is stored now, with a time-out of its own; None when there is none.

Raises KubeError, or GARBAGE for what is no pod.
"""


@dataclass(slots=True)
class _Grant:
    """The pod as it is stored if its bind goes through, or, `stored`, as it was found bound."""

    pod: Pod
    stored: bool = False
    backoff: Backoff | None = None
    """Of reads that failed."""


class Grants:
    """Each stays booked until the watch shows the outcome, or the API server says that there is none to come.

    `settled_after_s` has to be so long that the bind is stored or lost for good: only then a pod without a node says that
    it was lost, for a read sees every write that was finished before it began.
    """

    def __init__(
        self,
        read: Read,
        binder: Binder,
        *,
        settled_after_s: float,
        rng: Random | None = None,
    ) -> None:
        self._read = read
        self._binder = binder
        self._settled_after_s = settled_after_s
        self._rng = rng or Random()  # noqa: S311 - spreads waiting times, protects nothing
        self._grants: dict[str, _Grant] = {}
        self._queue: WorkQueue[str] = WorkQueue(self._settle, slots=_SIDE_BY_SIDE)

    def __len__(self) -> int:
        """How many are not settled."""
        return len(self._grants)

    @property
    def open(self) -> frozenset[str]:
        """The UIDs of the pods of whom it is not known what became of their bind."""
        return frozenset(uid for uid, grant in self._grants.items() if not grant.stored)

    def put(self, bound: Pod) -> None:
        """Remembers a pod as it was booked; granted again, the time begins anew."""
        self._grants[bound.uid] = _Grant(bound)
        self._look_after(bound.uid, self._settled_after_s)

    def stands(self, booked: Pod) -> bool:
        """Whether the books have the pod as it was granted, and not as anybody has seen it since."""
        grant = self._grants.get(booked.uid)
        return grant is not None and grant.pod is booked and not grant.stored

    def observe(self, old: Pod | None, new: Pod | None) -> None:
        """Follows the watch, after the books have: whoever is bound, ending or gone will not be bound any more."""
        if old is not None and (new is None or new.uid != old.uid):
            self._forget(old.uid)
        if new is not None and (new.bound or new.deleting or new.terminal):
            self._forget(new.uid)

    def take_back_all(self) -> None:
        """Takes every booking back; what is stored of them is for the next leader to list.

        Of many none is left at once, and their pods stay where they were in the ledger until it is settled: nothing is granted,
        nor does a term begin, before that.
        """
        self._binder.take_back_all(grant.pod for grant in self._grants.values())
        self._grants.clear()
        self._queue.clear()

    async def run(self) -> None:
        """Asks after those that are due, until cancelled."""
        await self._queue.run()

    async def _settle(self, uid: str) -> float | None:
        grant = self._grants.get(uid)
        if grant is None:
            return None
        stored, failure = None, None
        try:
            stored = await self._read(grant.pod)
        except (errors.KubeError, *GARBAGE) as error:
            failure = error
        if self._grants.get(uid) is not grant:
            # The watch was quicker, or another bind was granted meanwhile: then it has its own time.
            return None
        if failure is not None:
            return self._unknown(grant, failure)
        extra = {"pod": grant.pod.key, "node": grant.pod.node_name}
        if stored is None or stored.uid != uid or not stored.bound:
            _LOG.info("bind was never stored", extra=extra)
            self._take_back(uid)
        else:
            if not grant.stored:
                _LOG.warning("bind is stored, but the watch does not show it", extra=extra)
            self._confirm(stored)
        return None

    def _unknown(self, grant: _Grant, failure: Exception) -> float:
        """Keeps what nobody can tell; returns when to ask again."""
        level = logging.WARNING if grant.backoff is None else logging.DEBUG
        extra = {"pod": grant.pod.key, "error": errors.describe(failure)}
        _LOG.log(level, "what became of a bind cannot be read", extra=extra)
        grant.backoff = grant.backoff or Backoff(self._rng)
        asked_s = (failure.retry_after if isinstance(failure, errors.ApiError) else None) or 0.0
        return max(grant.backoff.next_delay(), min(asked_s, _RETRY_AFTER_CAP_S))

    def _confirm(self, stored: Pod) -> None:
        """Has the pod booked as it is until the watch shows it, or it is gone."""
        self._grants[stored.uid] = _Grant(stored, stored=True)
        self._binder.confirm(stored)
        self._look_after(stored.uid, _LOOK_AGAIN_S)

    def _look_after(self, uid: str, delay_s: float) -> None:
        self._queue.discard(uid)
        self._queue.add(uid, delay_s)

    def _take_back(self, uid: str) -> None:
        self._forget(uid)
        self._binder.take_back(uid)

    def _forget(self, uid: str) -> None:
        if self._grants.pop(uid, None) is not None:
            self._queue.discard(uid)


def settled_after(hook_timeout_s: float) -> float:
    """Seconds after a grant at which its bind is stored or lost for good.

    The request in which the hook was called began before the grant, so the API server has given it up `REQUEST_LIMIT_S` later.
    Somebody's webhook may have held it until right before that: then it has only come to the database, which may still store it
    for as long as any other write, a lift for instance. Where the hook is given longer than that, so is the database.
    """
    return REQUEST_LIMIT_S + max(STORED_LATE_S, hook_timeout_s)
