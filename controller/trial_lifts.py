"""Lifts that the API server is asked about before they are written, because such as they are were refused.

Each writer's webhook and every policy has its say about a dry run, and nothing is stored: it is certain at once how it ended.
So pods whose lift fails again and again hold their quota for as long as the question takes, and not until it is certain that
none of several tries was stored. However many of them there are, their quota is there for others.
"""

import asyncio
import logging

from controller.caches import Caches
from controller.flight import PUT_BACK, Flight, Key, about
from controller.lift_requests import patched
from controller.metrics import Metrics
from controller.refused_lifts import RefusedLifts
from core.plan.decision import Lift
from kube import errors
from kube.calls import LiftClient
from kube.informer import GARBAGE
from kube.workqueue import SLOW_S

_LOG = logging.getLogger(__name__)


class TrialLifts:
    """Asks the API server whether it would take lifts in."""

    def __init__(self, client: LiftClient, caches: Caches, metrics: Metrics, refused: RefusedLifts) -> None:
        self._client = client
        self._caches = caches
        self._metrics = metrics
        self._refused = refused

    def due(self, key: Key, flight: Flight) -> bool:
        """Whether this lift is to be asked about before it is written for the first time."""
        return not (flight.tries or flight.cleared) and self._refused.doubts(key)

    async def outcome(self, lift: Lift) -> errors.KubeError | None:
        """Why a lift is not taken in at present; None when it is.

        Where a namespace keeps its pods waiting for such an answer, it is not asked for a while about others of them either.
        """
        error = await self._outcome(lift)
        if error is not None:
            self._metrics.lifted(lift.queue, "refused")
            _LOG.warning("lift would be refused", extra=about(lift, error))
        return error

    async def _outcome(self, lift: Lift) -> errors.KubeError | None:
        namespace, clock = lift.pod.namespace, asyncio.get_running_loop().time
        if self._refused.rests(namespace):
            return errors.ConnectionFailed(f"lifts in namespace {namespace} are not answered at present")
        asked_at = clock()
        try:
            answer = await patched(self._client, lift, dry_run=True)
        except errors.KubeError as error:
            if clock() - asked_at >= SLOW_S:
                self._refused.keeps_waiting(namespace)
            return error
        try:
            gated = self._caches.project_pod(answer).gated
        except GARBAGE:
            # What is no pod says nothing against the lift.
            return None
        return errors.KubeError(PUT_BACK) if gated else None
