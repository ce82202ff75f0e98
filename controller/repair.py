"""The leader's third loop: records of bound mGPU pods that are missing or were edited are mended, the rest is said."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from controller.announcements import Recorder
from controller.caches import Caches
from controller.metrics import Metrics
from core import reasons
from core.mgpu.node import model_of
from core.mgpu.occupancy import Irregular
from core.mgpu.pieces import in_steps
from core.mgpu.repair import Examination, NodeNotice, Repair, examine
from core.names import FIELD_MANAGER
from core.objects import Node, Pod
from core.settings import Settings
from kube import errors
from kube.calls import Patcher
from kube.client import PatchType
from kube.events import Reference
from kube.lease import Term
from kube.resources import NODES, PODS
from kube.workqueue import WorkQueue

_LOG = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 4.0
"""As for lifts: no write of a leader that has lost its lease may be stored when the next one decides."""

SETTLE_S = 0.01
"""Changes of one burst are looked at together; hardly any time, for the node agent may be about to look."""

SIDE_BY_SIDE = 16
"""Writes of records at a time, and as many again to pods whose last write failed; more while slow ones are found out."""

_AT_ONCE = 500
"""So many nodes are put in line before others come to their turn."""

_REPEAT_FIRST_S = 0.2
_REPEAT_MAX_S = 60.0
_TICK_S = 0.01
"""Added to every wait, so that two clocks that differ by a hair do not make a loop."""

_QUIET_S = 30.0
"""A pod that needed nothing for so long is written at once again."""
_ACTION = "Repair"

_Key = tuple[str, str]
"""Node and UID of a pod."""


@dataclass(slots=True)
class _Attempt:
    """When a pod was last written, how long a further write waits and until when, and the version on which it was stored."""

    at: float
    delay_s: float
    due: float
    stored_on: str = ""


class Repairer:
    """Looks at every node whose mGPU pods, or whose cards, changed; does nothing with the feature off.

    One node is looked at after the other, each at most once in SETTLE_S. Between looking at the books and booking what is
    assigned there is no await, so no card that is being assigned is granted to a bind. Records are written side by side,
    each pod's by itself: a write that hangs or fails delays no other one, and no look at a node.
    """

    def __init__(
        self, client: Patcher, caches: Caches, recorder: Recorder, metrics: Metrics, settings: Settings
    ) -> None:
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._metrics = metrics
        self._settings = settings
        self._looks: WorkQueue[str] = WorkQueue(self._look_at, slots=1)
        self._writes: WorkQueue[_Key] = WorkQueue(self._mend, slots=SIDE_BY_SIDE)
        self._leading = False
        self._valid: Callable[[], bool] = bool
        self._repairs: dict[str, dict[str, Repair]] = {}
        """What is to be written, by node and UID, as the last look at the node found it."""
        self._attempts: dict[str, _Attempt] = {}
        self._said: dict[str, set[str]] = {}
        self._kinds: dict[str, Counter[Irregular]] = {}
        if settings.features.mgpu:
            caches.pods.subscribe(self._pod_changed)
            caches.nodes.subscribe(self._node_changed)

    async def run(self, term: Term) -> None:
        """Mends until cancelled. At the start every node with mGPU pods is looked at once.

        What the pods say then is taken for right, whatever was booked by a leader before. What is booked here stays booked
        afterwards: the caches give it back, see Leader.
        """
        if self._settings.features.mgpu:
            await self._caches.turns.finish(self._caches.keep_records())
        self._leading, self._valid = True, term.valid
        try:
            if self._settings.features.mgpu:
                await self._look_at_all()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._looks.run(), name="looks at nodes")
                tasks.create_task(self._writes.run(), name="records")
        finally:
            self._forget()

    async def _look_at_all(self) -> None:
        for number, node in enumerate(tuple(self._caches.ledger.nodes), 1):
            self._looks.add(node)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _forget(self) -> None:
        """Leaves nothing for the next term."""
        self._leading = False
        for node in tuple(self._kinds):
            self._count(node, Counter())
        self._looks.clear()
        self._writes.clear()
        self._repairs.clear()
        self._attempts.clear()
        self._said.clear()

    # -- what is to be looked at -------------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.asks_mgpu:
            return
        if new is None:
            self._attempts.pop(pod.uid, None)
        if _standing(old) != _standing(new):
            self._touch(*(each.node_name for each in (old, new) if each is not None))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or model_of(old) != model_of(new):
            self._touch(*(node.name for node in (old, new) if node is not None))

    def _touch(self, *nodes: str) -> None:
        """Has nodes looked at while we lead; a new leader looks at all of them anyway."""
        if self._leading:
            for node in {*nodes} - {""}:
                self._looks.add(node, SETTLE_S)

    # -- looking -----------------------------------------------------------------------------------------------

    async def _look_at(self, name: str) -> None:
        """Books and says what is to be said of the node as it is when that is known; without an await from then on, see above."""
        found = await self._caches.turns.finish(in_steps(partial(self._examine, name)))
        self._count(name, Counter(found.kinds))
        self._say(name, found.notices)
        for repair in found.repairs:
            if repair.reason == reasons.MGPU_RECORD_ASSIGNED:
                self._caches.assign(repair.pod, repair.cards)
        repairs = {repair.pod.uid: repair for repair in found.repairs}
        self._repairs.pop(name, None)
        if repairs:
            self._repairs[name] = repairs
        for uid in repairs:
            self._writes.add((name, uid))

    def _examine(self, name: str) -> Examination:
        ledger = self._caches.ledger
        node = ledger.nodes.get(name)
        if node is None:
            return Examination()
        return examine(node, ledger.pods_on(name), self._observed, self._caches.records, self._settings)

    def _observed(self, pod: Pod) -> Pod | None:
        seen = self._caches.pods.get(pod.key)
        return seen if seen is not None and seen.uid == pod.uid and seen.bound else None

    def _count(self, node: str, kinds: Counter[Irregular]) -> None:
        before = self._kinds.get(node, Counter[Irregular]())
        for kind in before.keys() | kinds.keys():
            self._metrics.irregularities.labels(str(kind)).inc(kinds[kind] - before[kind])
        if kinds:
            self._kinds[node] = kinds
        else:
            self._kinds.pop(node, None)

    def _say(self, name: str, notices: list[NodeNotice]) -> None:
        """Says what has not been said since it has been so."""
        said = self._said.pop(name, set())
        for notice in notices:
            if notice.topic not in said:
                regarding = self._about_node(name) if notice.pod is None else _about_pod(notice.pod)
                self._recorder.emit(regarding, "Warning", notice.reason, notice.message, _ACTION)
        if notices:
            self._said[name] = {notice.topic for notice in notices}

    def _about_node(self, name: str) -> Reference:
        node = self._caches.ledger.nodes.get(name)
        return Reference.of(NODES, name, uid=node.uid if node is not None else "")

    # -- writing -----------------------------------------------------------------------------------------------

    async def _mend(self, key: _Key) -> float | None:
        """Writes the record of one pod, if it is still to be written. See kube.workqueue.Work."""
        name, uid = key
        repair = self._repairs.get(name, {}).get(uid)
        seen = self._observed(repair.pod) if repair is not None else None
        if repair is None or seen is None or _standing(seen) != _standing(repair.pod):
            return None  # what changed has the node looked at again
        attempt, now = self._attempts.get(uid), asyncio.get_running_loop().time()
        if attempt is not None and attempt.stored_on == seen.resource_version:
            # The watch is about to show it.
            self._writes.add(key, attempt.delay_s)
            return None
        if attempt is not None and now < attempt.due:
            self._writes.add(key, attempt.due - now + _TICK_S)
            return None
        if not self._valid():
            return _REPEAT_FIRST_S
        delay_s = _REPEAT_FIRST_S
        if attempt is not None and now < attempt.at + max(_QUIET_S, 4 * attempt.delay_s):
            # Who is written again and again, by whomever it is undone, waits longer each time.
            delay_s = min(_REPEAT_MAX_S, 2 * attempt.delay_s)
        attempt = self._attempts[uid] = _Attempt(now, delay_s, due=now + delay_s)
        return await self._write(key, replace(repair, pod=seen), attempt)

    async def _write(self, key: _Key, repair: Repair, attempt: _Attempt) -> float | None:
        """Writes one record. However that ends, the cards stay booked, and the pod comes up again.

        The patch names the resourceVersion, so it can be stored only while the pod is as it was when it was decided:
        bound there, not started, without this record. A refusal mostly means that the watch will show another state.
        """
        pod = repair.pod
        try:
            await self._client.patch(
                PODS,
                pod.name,
                repair.patch,
                pod.namespace,
                patch_type=PatchType.MERGE,
                field_manager=FIELD_MANAGER,
                timeout_s=WRITE_TIMEOUT_S,
            )
        except errors.KubeError as error:
            wait_s = self._failed(repair, attempt, error)
            if not isinstance(error, errors.NotFound | errors.Conflict):
                return wait_s + _TICK_S
        else:
            wait_s = attempt.delay_s
            attempt.stored_on = pod.resource_version
            self._metrics.repairs.labels(repair.reason, "done").inc()
            _LOG.info("record written", extra=_about(repair))
            self._recorder.emit(_about_pod(pod), "Warning", repair.reason, repair.message, _ACTION)
        self._writes.add(key, wait_s + _TICK_S)
        return None

    def _failed(self, repair: Repair, attempt: _Attempt, error: errors.KubeError) -> float:
        """Notes that a write failed; for how many seconds the next one waits."""
        retried = isinstance(error, errors.Throttled | errors.ServerError | errors.ConnectionFailed)
        expected = isinstance(error, errors.NotFound | errors.Conflict)
        level = logging.WARNING if retried else logging.DEBUG if expected else logging.ERROR
        words = "record not written, trying again" if retried else "record refused"
        _LOG.log(level, words, extra=_about(repair) | {"error": errors.describe(error)})
        self._metrics.repairs.labels(repair.reason, "retried" if retried else "refused").inc()
        wait_s = max(attempt.delay_s, errors.retry_after_s(error))
        attempt.due = asyncio.get_running_loop().time() + wait_s
        return wait_s


def _about_pod(pod: Pod) -> Reference:
    return Reference.of(PODS, pod.name, pod.namespace, pod.uid)


def _standing(pod: Pod | None) -> tuple[object, ...]:
    """What of a pod decides about its record and its room."""
    if pod is None or not pod.bound:
        return ()
    return (pod.uid, pod.node_name, pod.annotations, pod.phase, pod.started, pod.deleting)


def _about(repair: Repair) -> dict[str, object]:
    return {"pod": repair.pod.key, "reason": repair.reason, "cards": dict(repair.cards)}
