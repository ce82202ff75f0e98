"""Puts queue and claims on record of pods that were let in without: by a version before, or past us.

What such a pod is charged to is fixed in the books at once; the record makes it last beyond this leader.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from controller.caches import Caches
from controller.readings import is_state_of
from core.names import FIELD_MANAGER
from core.objects import Claim, Pod
from core.queues.queue_records import late_records, records_patch
from kube import errors
from kube.calls import Patcher
from kube.client import PatchType
from kube.lease import Term
from kube.resources import PODS
from kube.workqueue import IDLE, WorkQueue

_LOG = logging.getLogger(__name__)

SIDE_BY_SIDE = 16
PER_NAMESPACE = 8
FIRST_S = 10.0
"""The first pass waits so long for records that are missing when leading begins; they are written on afterwards."""

_AT_ONCE = 200
"""So many pods are looked at before others come to their turn."""
_TIMEOUT_S = 4.0
_AGAIN_S = 1.0
_AGAIN_MAX_S = 300.0

_Key = tuple[str, str]
"""Namespace and UID."""


class QueueRecords:
    """Follows the pods while it leads. `begin` fixes what is there, and comes before anything is decided."""

    def __init__(self, client: Patcher, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._leads: Callable[[], bool] | None = None
        self._untried: set[_Key] = set()
        self._tried = asyncio.Event()
        self._delays: dict[_Key, float] = {}
        """Those that are to be written or being written, and how long each is put off should that come to nothing."""
        self._queue: WorkQueue[_Key] = WorkQueue(
            self._write, slots=SIDE_BY_SIDE, per_lane=PER_NAMESPACE, lane=lambda key: key[0]
        )
        self._claims: WorkQueue[str] = WorkQueue(self._look_at_claim, slots=1)
        """Claims that have changed, `namespace/name`: any number of pods may refer to one."""
        caches.pods.subscribe(self._pod_changed)
        # Of all that a record is made of, claims alone change without their pod.
        caches.claims.subscribe(self._claim_changed)

    async def begin(self, term: Term) -> None:
        """Fixes the queues of all pods that are there, from now on also of those that come."""
        self._leads = term.valid
        for number, pod in enumerate(tuple(self._caches.pods.values()), 1):
            current = self._caches.pods.get(pod.key)
            if current is not None:
                self._fix(current)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._untried = set(self._delays)

    async def written(self) -> None:
        """Returns when each write that `begin` found missing has been tried, or after FIRST_S; `run` has to be running."""
        self._tried.clear()
        if self._untried:
            _LOG.info("putting queues on record", extra={"pods": len(self._untried)})
            try:
                await asyncio.wait_for(self._tried.wait(), FIRST_S)
            except TimeoutError:
                _LOG.warning(
                    "going on with queues that are not on record", extra={"pods": len(self._untried)}
                )

    async def run(self) -> None:
        """Writes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._claims.run(), name="records of claims")
            await self._queue.run()

    def end(self) -> None:
        """Leaves nothing for the next term."""
        self._leads = None
        self._claims.clear()
        self._queue.clear()
        self._untried.clear()
        self._delays.clear()
        self._caches.ledger.release_queues()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if self._leads is not None and new is not None:
            self._fix(new)
        elif new is None and old is not None:
            self._done(_key(old))

    def _claim_changed(self, old: Claim | None, new: Claim | None) -> None:
        claim = new or old
        if self._leads is not None and claim is not None:
            self._claims.add(claim.key)

    async def _look_at_claim(self, claim: str) -> float:
        """Has the pods written that lack the record of a claim. See kube.workqueue.Work."""
        if self._caches.ledger.devices.awaits(claim):
            return _AGAIN_S
        for number, uid in enumerate(tuple(self._caches.ledger.devices.with_claim(claim)), 1):
            pod = self._latest(uid)
            if pod is not None:
                self._fix(pod)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return IDLE

    def _latest(self, uid: str) -> Pod | None:
        """The latest state of a pod that is booked."""
        booked = self._caches.ledger.observed(uid)
        pod = self._caches.latest(booked.key) if booked is not None else None
        return pod if pod is not None and pod.uid == uid else None

    def _fix(self, pod: Pod) -> None:
        """Has a pod written that lacks something; one that is being written is looked at again after that."""
        key = _key(pod)
        for claim in self._caches.ledger.devices.awaited(pod):
            self._claims.add(claim)
        if not late_records(pod, self._caches.ledger):
            self._done(key)
        elif key not in self._delays:
            self._delays[key] = _AGAIN_S
            self._queue.add(key)

    async def _write(self, key: _Key) -> float | None:
        """Writes the record of one pod, if it still lacks it. See kube.workqueue.Work."""
        pod = self._latest(key[1])
        records = late_records(pod, self._caches.ledger) if pod is not None else {}
        if pod is None or not records:
            self._done(key)
            return IDLE
        if self._leads is None or not self._leads():
            return _AGAIN_S
        try:
            answer = await self._client.patch(
                PODS,
                pod.name,
                records_patch(pod, records),
                pod.namespace,
                patch_type=PatchType.MERGE,
                field_manager=FIELD_MANAGER,
                timeout_s=_TIMEOUT_S,
            )
        except errors.KubeError as error:
            return self._failed(key, pod, error)
        _LOG.debug("put on record", extra={"pod": pod.key, "records": records})
        self._caches.answered(pod, answer)
        self._note_try(key)
        self._look_again(key, pod, records, unchanged=is_state_of(pod, answer))
        return None

    def _look_again(self, key: _Key, written: Pod, records: Mapping[str, str], *, unchanged: bool) -> None:
        """After a write that was stored: another one follows for what is missing by now, or was taken out again on its way in."""
        pod = self._latest(key[1])
        missing = late_records(pod, self._caches.ledger) if pod is not None else {}
        # What an answer that could not be read has made of the pod is what the watch will show.
        unknown = not unchanged and pod is not None and pod.resource_version == written.resource_version
        if not missing or unknown:
            self._done(key)
            return
        if records.items() & missing.items():
            _LOG.warning("not kept on record", extra={"pod": written.key, "records": records})
        self._queue.add(key, self._put_off(key))

    def _put_off(self, key: _Key) -> float:
        """For how many seconds the next write waits; the one after that waits longer."""
        delay_s = self._delays.get(key, _AGAIN_S)
        self._delays[key] = min(_AGAIN_MAX_S, 2 * delay_s)
        return delay_s

    def _failed(self, key: _Key, pod: Pod, error: errors.KubeError) -> float:
        """Notes that a write failed; for how many seconds the next one waits."""
        # There is none where the pod has gone meanwhile, or was found to lack nothing.
        delay_s = self._put_off(key) if key in self._delays else _AGAIN_S
        # Another state of the pod, or none, is what the watch will show; anything else somebody should know of.
        level = logging.DEBUG if isinstance(error, errors.NotFound | errors.Conflict) else logging.WARNING
        _LOG.log(level, "not put on record", extra={"pod": pod.key, "error": errors.describe(error)})
        self._note_try(key)
        return max(delay_s, errors.retry_after_s(error))

    def _done(self, key: _Key) -> None:
        if self._delays.pop(key, None) is not None:
            self._queue.discard(key)
            self._note_try(key)

    def _note_try(self, key: _Key) -> None:
        self._untried.discard(key)
        if not self._untried:
            self._tried.set()


def _key(pod: Pod) -> _Key:
    return pod.namespace, pod.uid
