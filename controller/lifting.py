"""The leader's loop: run the quota pass where something changed, write the lifts, say why the rest waits."""

import asyncio
import logging

from controller.announcements import Announcements
from controller.caches import Caches
from controller.metrics import Metrics
from controller.writing import Patcher
from core.names import FIELD_MANAGER
from core.plan.lift import Decision, Hold, Lift, Planner
from kube import errors
from kube.client import PatchType
from kube.lease import Term
from kube.resources import PODS

_LOG = logging.getLogger(__name__)

CONCURRENT_WRITES = 16
"""Lifts under way at once; more would only queue up in the API server."""

WRITE_TIMEOUT_S = 4.0
"""Shorter than what lies between the renew deadline and the end of the lease, so that no write of a leader that has
lost its lease can still arrive when the next one decides."""

_RETRY_FIRST_S = 0.2
_RETRY_MAX_S = 5.0


class Lifter:
    """Lifts gates while it leads. One instance serves one term."""

    def __init__(
        self,
        client: Patcher,
        caches: Caches,
        announcements: Announcements,
        metrics: Metrics,
        *,
        settle_s: float = 0.01,
    ) -> None:
        self._client = client
        self._caches = caches
        self._changed = caches.signal()
        self._announcements = announcements
        self._metrics = metrics
        self._settle_s = settle_s
        self._writes = asyncio.Semaphore(CONCURRENT_WRITES)

    async def run(self, term: Term) -> None:
        """Decides until cancelled. At the start every queue is looked at once."""
        ledger = self._caches.ledger
        ledger.dirty.update(ledger.accounts)
        planner = Planner(ledger)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._pass(planner, term, tasks)
                    await self._changed.wait()
                    # What comes in a burst is decided on together.
                    await asyncio.sleep(self._settle_s)
        finally:
            ledger.forget_all()

    async def _pass(self, planner: Planner, term: Term, tasks: asyncio.TaskGroup) -> None:
        self._changed.clear()
        ledger = self._caches.ledger
        with self._metrics.pass_seconds.time():
            while dirty := ledger.take_dirty():
                for name in planner.order(dirty):
                    for decision in planner.decide(name):
                        self._carry_out(decision, term, tasks)
                    # Other tasks, the binding hook above all, come to their turn between two queues.
                    await asyncio.sleep(0)

    def _carry_out(self, decision: Decision, term: Term, tasks: asyncio.TaskGroup) -> None:
        if isinstance(decision, Hold):
            self._metrics.holds.labels(decision.reason).inc()
            self._announcements.held(decision)
            return
        self._announcements.lifted(decision)
        tasks.create_task(self._write(decision, term), name=f"lift {decision.pod.key}")

    async def _write(self, lift: Lift, term: Term) -> None:
        """Writes one lift, for as long as nobody knows how it ended.

        An answer that is lost may hide a lift that was stored. Its quota stays booked until a definite answer: the
        patch names the resourceVersion, so of all its repetitions at most one can be stored.
        """
        delay_s, patch = _RETRY_FIRST_S, lift.patch
        async with self._writes:
            while term.valid():
                try:
                    await self._client.patch(
                        PODS,
                        lift.pod.name,
                        patch,
                        lift.pod.namespace,
                        patch_type=PatchType.JSON,
                        field_manager=FIELD_MANAGER,
                        timeout_s=WRITE_TIMEOUT_S,
                    )
                except (errors.Throttled, errors.ServerError, errors.ConnectionFailed) as error:
                    self._metrics.lifts.labels("retried").inc()
                    _LOG.warning("lift not answered, trying again", extra=_about(lift, error))
                    await asyncio.sleep(delay_s)
                    delay_s = min(_RETRY_MAX_S, 2 * delay_s)
                except errors.ApiError as error:
                    await self._failed(lift, error)
                    return
                else:
                    self._metrics.lifts.labels("done").inc()
                    _LOG.info("lifted", extra=_about(lift, None))
                    return

    async def _failed(self, lift: Lift, error: errors.ApiError) -> None:
        """The API server refused the patch: wait for the state that explains it, then decide again.

        A failed test, an object that has gone or changed: the watch will show it. Anything else (a policy, missing
        rights) would be refused again at once, so the pod waits a while.
        """
        self._metrics.lifts.labels("refused").inc()
        expected = isinstance(error, errors.NotFound | errors.Conflict | errors.Invalid)
        _LOG.log(logging.DEBUG if expected else logging.ERROR, "lift refused", extra=_about(lift, error))
        await self._caches.wait_changed(lift.pod, timeout_s=1.0 if expected else 30.0)
        self._caches.ledger.retract(lift.lifted)
        self._caches.notify()


def _about(lift: Lift, error: errors.KubeError | None) -> dict[str, object]:
    about: dict[str, object] = {"pod": lift.pod.key, "queue": lift.queue, "assigned": dict(lift.assigned)}
    return about if error is None else about | {"error": str(error)}
