"""Lifts that the API server is asked about before they are decided on again, because such as they are were refused.

Each writer's webhook and every policy has its say about a dry run, and nothing is stored. So the pod needs no quota for it:
however many there are whose lift fails, and however long it takes to fail, their quota is there for others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus

from controller.caches import Caches
from controller.flight import PUT_BACK, RETRY_FIRST_S, RETRY_MAX_S, Key, about, gang_of, others_wait_for
from controller.lift_requests import OF_ANOTHER_POD, patched, queue_of_requests
from controller.metrics import Metrics
from controller.refused_lifts import RefusedLifts
from controller.write_order import WriteOrder
from core.objects import Pod
from core.plan.decision import Lift
from kube import errors
from kube.calls import LiftClient
from kube.informer import GARBAGE
from kube.lease import Term
from kube.workqueue import IDLE

_LOG = logging.getLogger(__name__)
_NO_DRY_RUN = "does not support dry run"
"""In these words the API server refuses a dry run, status 400, that would call a webhook with side effects."""


class TrialLifts:
    """Asks the API server whether it would take lifts in, of each pod that `refused` holds when that is due.

    Questions have slots of their own: none of the lifts in `order`, which are being written, waits for one. `read` reads what is
    stored of a pod.
    """

    def __init__(
        self,
        client: LiftClient,
        caches: Caches,
        metrics: Metrics,
        refused: RefusedLifts,
        order: WriteOrder,
        read: Callable[[Pod], Awaitable[Pod | None]],
    ) -> None:
        self._client = client
        self._caches = caches
        self._metrics = metrics
        self._refused = refused
        self._order = order
        self._read = read
        self._term: Term | None = None
        self._queue = queue_of_requests(self._work)

    async def run(self, term: Term) -> None:
        """Asks until cancelled."""
        self._term = term
        try:
            await self._queue.run()
        finally:
            self._term = None
            self._queue.clear()

    def due(self, key: Key, lift: Lift) -> bool:
        """Whether this lift is to be asked about before it is written.

        Not if others of its gang are in, or about to be, and hold their quota for nothing without it: it is tried with more patience.
        """
        if not self._refused.doubts(key, lift):
            return False
        return not (self._order.any_under_way(gang_of(lift)) or others_wait_for(lift, self._caches.ledger))

    def ask(self, key: Key, lift: Lift) -> None:
        """Has a pod held that was to be lifted so, until it is known whether that would be taken in."""
        self._refused.ask(key, lift)
        self._queue.add(key)

    def ask_later(self, key: Key, wait_s: float) -> None:
        """The same of one that is held for so many seconds, for its lift was refused."""
        self._queue.add(key, wait_s)

    def discard(self, key: Key) -> None:
        """Nothing is to be asked about a pod any more."""
        self._queue.discard(key)

    async def _work(self, key: Key) -> float | None:
        """One question, if it is due. Returns after how many seconds it is put again, None when that is not known or not needed."""
        pod, lift = self._caches.ledger.observed(key[1]), self._refused.lift(key)
        if pod is None or not pod.gated:
            self._refused.forget(key)
        elif (left_s := self._refused.left_s(key)) > 0:
            self._queue.add(key, left_s)
        elif lift is not None:
            if self._term is None or not self._term.valid():
                return RETRY_MAX_S
            return await self._ask(key, replace(lift, pod=pod))
        return IDLE

    async def _ask(self, key: Key, lift: Lift) -> float | None:
        error = await self._outcome(lift)
        changed = isinstance(error, OF_ANOTHER_POD) and await self._has_changed(lift)
        if key not in self._refused:
            return IDLE
        if error is not None:
            return RETRY_FIRST_S if changed else self._not_taken_in(key, lift, error)
        self._refused.clear(key)
        return None

    def _not_taken_in(self, key: Key, lift: Lift, error: errors.KubeError) -> float | None:
        asked_s = errors.retry_after_s(error)
        if isinstance(error, errors.Throttled | errors.Unauthorized):
            wait_s = self._refused.put_off(key, asked_s)
            if wait_s is not None:
                return wait_s
        self._metrics.lifted(lift.queue, "refused")
        _LOG.warning("lift would be refused", extra=about(lift, error))
        if _is_denial(error) and self._refused.goes_anyway(key):
            self._refused.clear(key)
            return None
        not_before = asyncio.get_running_loop().time() + asked_s
        return self._refused.refuse(key, lift, errors.describe(error), not_before)

    async def _outcome(self, lift: Lift) -> errors.KubeError | None:
        """Why a lift is not taken in at present; None when it is, or when nobody can tell by a dry run."""
        try:
            answer = await patched(self._client, lift, dry_run=True)
        except errors.KubeError as error:
            unknown = isinstance(error, errors.ApiError) and error.status == HTTPStatus.BAD_REQUEST
            return None if unknown and _NO_DRY_RUN in str(error) else error
        try:
            gated = self._caches.project_pod(answer).gated
        except GARBAGE:
            # What is no pod says nothing against the lift.
            return None
        return errors.KubeError(PUT_BACK) if gated else None

    async def _has_changed(self, lift: Lift) -> bool:
        """Whether the pod is another one by now than was asked about, by what is stored."""
        try:
            await self._caches.look_up(lift.pod, self._read)
        except errors.KubeError:
            return False
        seen = self._caches.ledger.observed(lift.pod.uid)
        return seen is None or seen.resource_version != lift.pod.resource_version


def _is_denial(error: errors.KubeError) -> bool:
    """Whether somebody has said no, and not only nobody yes."""
    unanswered = isinstance(error, errors.ServerError | errors.Throttled | errors.Unauthorized)
    return (
        isinstance(error, errors.ApiError) and not unanswered and error.status != HTTPStatus.REQUEST_TIMEOUT
    )
