"""Members of a task that its scheduler may not be led apart with are nominated for the nodes on which their room is booked.

Volcano's scheduler tries `status.nominatedNodeName` before it looks at other nodes. For which node a pod is nominated stands in
its record since its lift; here it gets into the status, right after the lift, and again in each term. Should the scheduler have
given a member the place of another one meanwhile, the other one is nominated for the place that is left.
"""

import logging
from http import HTTPStatus
from typing import Final

from controller.caches import Caches
from core import names
from core.mgpu.ask import mgpu_ask
from core.mgpu.destination import gives_way, nominated_for, task_of
from core.objects import Pod
from core.stage import Stage
from kube import errors
from kube.calls import Patcher
from kube.client import Json, PatchType
from kube.lease import Term
from kube.resources import PODS
from kube.workqueue import WorkQueue

_LOG = logging.getLogger(__name__)

Key = tuple[str, str]
"""The namespace and the UID of a pod."""

SLOTS: Final = 8
PER_NAMESPACE: Final = 4
WRITE_TIMEOUT_S: Final = 4.0
AGAIN_S: Final = 1.0
"""After so long a write is tried again that the API server could not answer."""


class Nominations:
    """Writes nominations while it leads. One instance serves one term after the other."""

    def __init__(self, client: Patcher, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._term: Term | None = None
        self._moves: dict[Key, str] = {}
        """Who is to be nominated for another node than the one on record, and for which."""
        self._queue: WorkQueue[Key] = WorkQueue(
            self._work, slots=SLOTS, per_lane=PER_NAMESPACE, lane=lambda key: key[0]
        )
        if caches.ledger.settings.features.mgpu:
            caches.pods.subscribe(self._pod_changed)

    async def run(self, term: Term) -> None:
        """Writes until cancelled; whoever was lifted before is nominated anew, which changes nothing as a rule."""
        self._term = term
        for entry in tuple(self._caches.ledger.reserved_shares.values()):
            if nominated_for(entry.pod):
                self._queue.add((entry.pod.namespace, entry.pod.uid))
        try:
            await self._queue.run()
        finally:
            self._term = None
            self._queue.clear()
            self._moves.clear()

    def move(self, pod: Pod, node: str) -> None:
        """Has a pod nominated for another node than the one on record."""
        if self._term is not None:
            self._moves[pod.namespace, pod.uid] = node
            self._queue.add((pod.namespace, pod.uid))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if self._term is None:
            return
        if old is not None and (new is None or new.uid != old.uid or new.bound):
            self._moves.pop((old.namespace, old.uid), None)
        if new is None or not nominated_for(new):
            return
        before = old if old is not None and old.uid == new.uid else None
        if not new.bound and (before is None or nominated_for(before) != nominated_for(new)):
            self._moves.pop((new.namespace, new.uid), None)
            self._queue.add((new.namespace, new.uid))
        elif new.bound and before is not None and not before.bound and new.node_name != nominated_for(new):
            self._change_places(new)

    def _change_places(self, bound: Pod) -> None:
        """Has the one who loses its place to this pod nominated for the place that this one has left."""
        task, ask = task_of(bound), mgpu_ask(bound)
        for uid, entry in self._caches.ledger.led_to(bound.node_name).items():
            key = entry.pod.namespace, uid
            if key not in self._moves and entry.demand.mgpu == ask and gives_way(entry.pod, task):
                self.move(entry.pod, nominated_for(bound))
                return

    async def _work(self, key: Key) -> float | None:
        """One write for one pod. See kube.workqueue.Work."""
        ledger = self._caches.ledger
        pod = ledger.observed(key[1])
        if pod is None or ledger.stages.of(pod) is not Stage.RESERVED or not nominated_for(pod):
            return None
        if self._term is None or not self._term.valid():
            return AGAIN_S
        place = self._moves.get(key)
        try:
            if place is None:
                await self._patch(pod, {"status": {"nominatedNodeName": nominated_for(pod)}}, "status")
            else:
                await self._patch(pod, {"metadata": {"annotations": {names.NOMINATED_ANNOTATION: place}}})
        except (errors.NotFound, errors.Conflict):
            # It is gone, or another one by now.
            self._moves.pop(key, None)
        except (
            errors.Throttled,
            errors.Unauthorized,
            errors.ServerError,
            errors.ConnectionFailed,
        ) as error:
            return max(AGAIN_S, errors.retry_after_s(error))
        except errors.ApiError as error:
            if error.status == HTTPStatus.REQUEST_TIMEOUT:
                return max(AGAIN_S, errors.retry_after_s(error))
            self._moves.pop(key, None)
            _LOG.warning(
                "pod not nominated for the node of its room; its scheduler may try others first",
                extra={"pod": pod.key, "node": place or nominated_for(pod), "error": errors.describe(error)},
            )
        return None

    async def _patch(self, pod: Pod, change: Json, subresource: str | None = None) -> None:
        body = {**change, "metadata": {**change.get("metadata", {}), "uid": pod.uid}}
        await self._client.patch(
            PODS,
            pod.name,
            body,
            pod.namespace,
            patch_type=PatchType.MERGE,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
            timeout_s=WRITE_TIMEOUT_S,
        )
