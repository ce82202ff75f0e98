"""Members of a task that its scheduler may not be led apart with are nominated for the nodes on which their room is booked.

Volcano's scheduler tries `status.nominatedNodeName` before it looks at other nodes. For which node a pod is nominated stands in
its record since its lift; here it gets into the status, right after the lift, and again in each term. Should the scheduler have
given a member the place of another one meanwhile, the other one is nominated for the place that is left, see ChangedPlaces.

A room is booked on the node for which a pod is nominated from the moment on that this is decided: as a lift it is in the books
while it is written, so that nobody else is given the room. What is refused for good is given back.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import Final

from controller.caches import Caches
from controller.changed_places import ChangedPlaces
from core import names
from core.mgpu.destination import nominated_for
from core.objects import Pod
from core.queues.entry import Entry
from core.stage import Stage
from core.steps import Steps, each
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

_ADDED_IN_A_STEP: Final = 100
"""Pods that begin to wait for their write in about half a millisecond."""


class Nominations:
    """Writes nominations while it leads. One instance serves one term after the other."""

    def __init__(self, client: Patcher, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._term: Term | None = None
        self._queue: WorkQueue[Key] = WorkQueue(
            self._work, slots=SLOTS, per_lane=PER_NAMESPACE, lane=lambda key: key[0]
        )
        self._places = ChangedPlaces(caches, self.move)
        if caches.ledger.settings.features.mgpu:
            caches.pods.subscribe(self._pod_changed)

    async def run(self, term: Term) -> None:
        """Writes until cancelled; whoever was lifted before is nominated anew, which changes nothing as a rule."""
        self._term = term
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._places.run(), name="changed places")
                await self._caches.turns.finish(self._lifted_before())
                await self._queue.run()
        finally:
            self._term = None
            self._places.clear()
            self._queue.clear()

    def _lifted_before(self) -> Steps[None]:
        """Has those written that are there when it begins; who comes or changes meanwhile is told of."""

        def add(entry: Entry) -> None:
            if nominated_for(entry.pod):
                self._queue.add((entry.pod.namespace, entry.pod.uid))

        yield from each(tuple(self._caches.ledger.reserved_shares.values()), add, _ADDED_IN_A_STEP)

    def move(self, pod: Pod, node: str) -> None:
        """Has a pod nominated for another node than the one on record. Its room is booked there at once."""
        if self._term is not None:
            self._caches.ledger.move_room(pod.uid, node)
            self._queue.add((pod.namespace, pod.uid))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if self._term is None:
            return
        if new is None or not nominated_for(new):
            return
        before = old if old is not None and old.uid == new.uid else None
        if not new.bound and (before is None or nominated_for(before) != nominated_for(new)):
            self._queue.add((new.namespace, new.uid))
        elif new.bound and before is not None and not before.bound and new.node_name != nominated_for(new):
            self._places.note(new)

    async def _work(self, key: Key) -> float | None:
        """One write for one pod. See kube.workqueue.Work."""
        ledger = self._caches.ledger
        pod = ledger.observed(key[1])
        if pod is None or ledger.stages.of(pod) is not Stage.RESERVED or not nominated_for(pod):
            return None
        if self._term is None or not self._term.valid():
            return AGAIN_S
        place = ledger.moving_to(pod.uid)
        try:
            if not place:
                await self._patch(pod, {"status": {"nominatedNodeName": nominated_for(pod)}}, "status")
            else:
                await self._patch(pod, {"metadata": {"annotations": {names.NOMINATED_ANNOTATION: place}}})
        except (errors.NotFound, errors.Conflict):
            # It is gone, or another one by now.
            self._stays(pod, place)
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
            self._stays(pod, place)
            _LOG.warning(
                "pod not nominated for the node of its room; its scheduler may try others first",
                extra={"pod": pod.key, "node": place or nominated_for(pod), "error": errors.describe(error)},
            )
        return None

    def _stays(self, pod: Pod, place: str) -> None:
        """The move to this node was refused for good; another one that was decided meanwhile stands."""
        if place and self._caches.ledger.moving_to(pod.uid) == place:
            self._caches.ledger.keep_room(pod.uid)

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
