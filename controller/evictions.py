"""Deletions of pods that held quota without a node for too long: few at a time, and none held up by another."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from controller.metrics import Metrics
from core.objects import Pod
from core.steps import Pace
from kube import errors
from kube.calls import Deleter
from kube.lease import Term
from kube.resources import PODS
from kube.workqueue import WorkQueue

_LOG = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 4.0
"""As for lifts: no write of a leader that has lost its lease may arrive when the next one decides."""

BURST = 5
EVERY_S = 1.0
"""After a pause five pods are deleted at once, then one a second: a setting that was a mistake can still be taken back."""

_SIDE_BY_SIDE = 16
"""More than are ever under way at that pace, should each take until its time-out."""

_PASSED_AT_ONCE = 1000
"""So many that are not to be deleted any more are passed over before others come to their turn."""

_AGAIN_S = 30.0
"""A pod that was to be deleted and is still there comes up again after this time."""


class Evictions:
    """Takes pods at any time, by UID, and deletes them in that order while it runs, at the pace above.

    What failed is tried again at the same pace, when nobody waits who has not been tried yet: so neither do many that fail
    hold up another one, nor are all of them deleted at once when an API server that was away is back.
    `condemned` gives a pod as it is now, None once it is not to be deleted any more; `done` is called with each one that was.
    """

    def __init__(
        self,
        client: Deleter,
        metrics: Metrics,
        condemned: Callable[[str], Pod | None],
        done: Callable[[Pod], None],
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._condemned = condemned
        self._done = done
        self._valid: Callable[[], bool] = bool
        # To find the first one of a dict costs as many steps as were taken from its beginning.
        self._new: OrderedDict[str, None] = OrderedDict()
        self._repeated: OrderedDict[str, None] = OrderedDict()
        self._allowed: set[str] = set()
        """Whose turn has come, until the request goes out."""
        self._came = asyncio.Event()
        self._next_at = float("-inf")
        self._deletions: WorkQueue[str] = WorkQueue(self._delete, slots=_SIDE_BY_SIDE)

    def add(self, uid: str) -> None:
        """Has a pod deleted when its turn comes."""
        self._new[uid] = None
        self._came.set()

    async def run(self, term: Term) -> None:
        """Deletes until cancelled, and forgets then who was still to come."""
        self._valid = term.valid
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._deletions.run(), name="deletions")
                await self._let_in()
        finally:
            for waiting in (self._new, self._repeated, self._allowed, self._deletions):
                waiting.clear()

    async def _let_in(self) -> None:
        """Lets one after the other in, at the pace of BURST and EVERY_S; who is not to be deleted any more costs no turn."""
        loop, pace = asyncio.get_running_loop(), Pace(_PASSED_AT_ONCE)
        while True:
            self._came.clear()
            while line := self._new or self._repeated:
                uid = next(iter(line))
                allowed_at = max(self._next_at, loop.time() - (BURST - 1) * EVERY_S)
                if self._condemned(uid) is None:
                    del line[uid]
                    if pace.due():
                        await asyncio.sleep(0)
                elif allowed_at > loop.time():
                    await asyncio.sleep(allowed_at - loop.time())
                else:
                    del line[uid]
                    self._next_at = allowed_at + EVERY_S
                    self._allowed.add(uid)
                    self._deletions.add(uid)
            await self._came.wait()

    async def _delete(self, uid: str) -> float | None:
        """Deletes a pod as it was when it was judged: should it have got a node meanwhile, it stays.

        See kube.workqueue.Work. Whatever the answer, a pod that is still there comes up again and waits for its turn.
        """
        pod, outcomes = self._condemned(uid), self._metrics.evictions
        if pod is None:
            self._allowed.discard(uid)
            return None
        if uid not in self._allowed:
            self._repeated[uid] = None
            self._came.set()
            return None
        self._allowed.discard(uid)
        if not self._valid():
            return _AGAIN_S
        try:
            await self._client.delete(
                PODS,
                pod.name,
                pod.namespace,
                uid=pod.uid,
                resource_version=pod.resource_version,
                timeout_s=WRITE_TIMEOUT_S,
            )
        except errors.KubeError as error:
            expected = isinstance(error, errors.NotFound | errors.Conflict)
            about = {"pod": pod.key, "error": errors.describe(error)}
            _LOG.log(logging.DEBUG if expected else logging.WARNING, "reserved pod not deleted", extra=about)
            outcomes.labels("failed").inc()
            if not expected:
                return max(_AGAIN_S, errors.retry_after_s(error))
        else:
            outcomes.labels("done").inc()
            _LOG.info("reserved pod deleted", extra={"pod": pod.key})
            self._done(pod)
        self._deletions.add(uid, _AGAIN_S)
        return None
