"""The leader's third loop: records of bound mGPU pods that are missing or were edited are mended, the rest is said."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, replace

from controller.announcements import Recorder
from controller.caches import Caches
from controller.metrics import Metrics
from controller.writing import Patcher
from core import reasons
from core.mgpu.node import model_of
from core.mgpu.occupancy import Irregular
from core.mgpu.repair import Findings, Notice, Repair, examine
from core.names import FIELD_MANAGER
from core.objects import Node, Pod
from core.settings import Settings
from kube import errors
from kube.client import PatchType
from kube.events import Reference
from kube.lease import Term
from kube.resources import NODES, PODS

_LOG = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 4.0
"""As for lifts: no write of a leader that has lost its lease may arrive when the next one decides."""

SETTLE_S = 0.01
"""Changes of one burst are looked at together; hardly any time, for the node agent may be about to look."""

_REPEAT_FIRST_S = 0.2
_REPEAT_MAX_S = 60.0
_QUIET_S = 30.0
"""A pod that needed nothing for so long is written at once again."""
_ACTION = "Repair"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """When a pod was last written, how long the next write waits, and the version on which a write was stored."""

    at: float
    delay_s: float
    stored_on: str = ""

    @property
    def due(self) -> float:
        """When the pod may be written again."""
        return self.at + self.delay_s


class Repairer:
    """Looks at every node whose mGPU pods, or whose cards, changed; does nothing with the feature off.

    One worker. Between looking at the books and booking what is assigned there is no await, so no card that is being
    assigned is granted to a bind.
    """

    def __init__(
        self, client: Patcher, caches: Caches, recorder: Recorder, metrics: Metrics, settings: Settings
    ) -> None:
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._metrics = metrics
        self._settings = settings
        self._changed = asyncio.Event()
        self._dirty: set[str] = set()
        self._later: dict[str, float] = {}
        self._attempts: dict[str, _Attempt] = {}
        self._said: dict[str, set[str]] = {}
        self._kinds: dict[str, Counter[Irregular]] = {}
        if settings.features.mgpu:
            caches.pods.subscribe(self._pod_changed)
            caches.nodes.subscribe(self._node_changed)

    async def run(self, term: Term) -> None:
        """Mends until cancelled. At the start every node with mGPU pods is looked at once.

        What the pods say then is taken for right, whatever was booked by a leader before.
        """
        if self._settings.features.mgpu:
            self._caches.keep_records()
            self._dirty.update(self._caches.ledger.nodes)
        try:
            while True:
                self._changed.clear()
                for node in self._take_due():
                    await self._look_at(node, term)
                await self._wait()
                await asyncio.sleep(SETTLE_S)
        finally:
            self._caches.release_records()
            self._forget()

    def _forget(self) -> None:
        """Leaves nothing for the next term."""
        for node in tuple(self._kinds):
            self._count(node, Counter())
        self._later.clear()
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
        self._dirty |= {*nodes} - {""}
        self._changed.set()

    def _take_due(self) -> list[str]:
        now = asyncio.get_running_loop().time()
        nodes = sorted(self._dirty | {node for node, due in self._later.items() if due <= now})
        self._dirty.clear()
        return nodes

    async def _wait(self) -> None:
        """Returns at the next change, or when a write is due again."""
        try:
            async with asyncio.timeout_at(min(self._later.values(), default=None)):
                await self._changed.wait()
        except TimeoutError:
            return

    # -- looking -----------------------------------------------------------------------------------------------

    async def _look_at(self, name: str, term: Term) -> None:
        found = self._examine(name)
        self._later.pop(name, None)
        self._count(name, Counter(found.kinds))
        self._say(name, found.notices)
        for repair in found.repairs:
            if repair.reason == reasons.MGPU_RECORD_ASSIGNED:
                self._caches.assign(repair.pod, repair.cards)
        for repair in found.repairs:
            if term.valid() and self._may_write(repair.pod, name):
                await self._write(repair)
        # The binding hook comes to its turn between two nodes.
        await asyncio.sleep(0)

    def _examine(self, name: str) -> Findings:
        ledger = self._caches.ledger
        node = ledger.nodes.get(name)
        if node is None:
            return Findings()
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

    def _say(self, name: str, notices: list[Notice]) -> None:
        """Says what has not been said since it has been so."""
        said = self._said.pop(name, set())
        for notice in notices:
            if notice.topic not in said:
                self._emit(name, notice.pod, notice.reason, notice.message)
        if notices:
            self._said[name] = {notice.topic for notice in notices}

    def _emit(self, node: str, pod: Pod | None, reason: str, message: str) -> None:
        if pod is not None:
            regarding = Reference.of(PODS, pod.name, pod.namespace, pod.uid)
        else:
            regarding = Reference.of(NODES, node, uid=self._caches.ledger.nodes[node].uid)
        self._recorder.emit(regarding, "Warning", reason, message, _ACTION)

    # -- writing -----------------------------------------------------------------------------------------------

    def _may_write(self, pod: Pod, node: str) -> bool:
        """Whether to write now. Who is written again and again, by whomever it is undone, waits longer each time."""
        attempt, now = self._attempts.get(pod.uid), asyncio.get_running_loop().time()
        if attempt is not None and attempt.stored_on == pod.resource_version:
            return False  # the watch is about to show it
        if attempt is not None and now < attempt.due:
            self._come_back(node, attempt.due)
            return False
        delay_s = _REPEAT_FIRST_S
        if attempt is not None and now < attempt.at + max(_QUIET_S, 4 * attempt.delay_s):
            delay_s = min(_REPEAT_MAX_S, 2 * attempt.delay_s)
        self._attempts[pod.uid] = _Attempt(now, delay_s)
        self._come_back(node, now + delay_s)
        return True

    def _come_back(self, node: str, due: float) -> None:
        self._later[node] = min(due, self._later.get(node, due))

    async def _write(self, repair: Repair) -> None:
        """Writes one record. However that ends, the cards stay booked, and the node is looked at again.

        The patch names the resourceVersion, so it can be stored only while the pod is as it was when it was decided:
        bound there, not started, without this record. A refusal mostly means that the watch will show another state.
        """
        pod, outcomes = repair.pod, self._metrics.repairs
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
        except (errors.Throttled, errors.ServerError, errors.ConnectionFailed) as error:
            outcomes.labels(repair.reason, "retried").inc()
            _LOG.warning("record not written, trying again", extra=_about(repair, error))
        except errors.ApiError as error:
            outcomes.labels(repair.reason, "refused").inc()
            expected = isinstance(error, errors.NotFound | errors.Conflict)
            _LOG.log(
                logging.DEBUG if expected else logging.ERROR, "record refused", extra=_about(repair, error)
            )
        else:
            outcomes.labels(repair.reason, "done").inc()
            attempt = self._attempts.get(pod.uid)
            if attempt is not None:
                self._attempts[pod.uid] = replace(attempt, stored_on=pod.resource_version)
            _LOG.info("record written", extra=_about(repair, None))
            self._emit(pod.node_name, pod, repair.reason, repair.message)


def _standing(pod: Pod | None) -> tuple[object, ...]:
    """What of a pod decides about its record and its room."""
    if pod is None or not pod.bound:
        return ()
    return (pod.uid, pod.node_name, pod.annotations, pod.phase, pod.started, pod.deleting)


def _about(repair: Repair, error: errors.KubeError | None) -> dict[str, object]:
    about: dict[str, object] = {"pod": repair.pod.key, "reason": repair.reason, "cards": dict(repair.cards)}
    return about if error is None else about | {"error": str(error)}
