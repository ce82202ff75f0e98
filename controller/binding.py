"""The binding hook: a pod that asks for mGPU gets its cards in the very write that gives it its node."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from controller.caches import Caches
from controller.metrics import Metrics
from core import names, reasons
from core.admission.bindings import Target, grant, obstacle, refuse, target_of
from core.admission.request import AdmissionRequest, Decision
from core.mgpu.ask import mgpu_ask
from core.mgpu.binding import Granted, decide
from core.objects import Pod, pod
from core.objects.node import Node
from core.settings import Settings
from kube import errors
from kube.client import Json
from kube.resources import PODS, Resource

_LOG = logging.getLogger(__name__)

READ_TIMEOUT_S = 2.0

ASSUMED_FOR_S = 60.0
"""How long a granted bind that the watch never shows keeps its cards; the API server answers binds within seconds."""


Answer = Callable[[AdmissionRequest], Awaitable[Decision]]


class PodReader(Protocol):
    """The one call of kube.client.Client that the hook makes."""

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.get."""


class BindingHook:
    """Answers reviews of Bindings. Grants are given only while `leading`; what asks for nothing of ours passes anyway.

    Everything between looking at the ledger and booking in it happens without an await, so two binds never see the
    same free card.
    """

    def __init__(
        self,
        reader: PodReader | None,
        caches: Caches,
        settings: Settings,
        metrics: Metrics,
        ask_leader: Answer | None = None,
    ) -> None:
        self._reader = reader
        self._caches = caches
        self._settings = settings
        self._metrics = metrics
        self._ask_leader = ask_leader or self._leaderless
        self._assumed: dict[str, float] = {}
        self.leading = False

    async def review(self, request: AdmissionRequest) -> Decision:
        """The answer to one Binding, the leader's where the pod is ours. Never raises for what the Binding holds."""
        return await self._review(request, self._ask_leader)

    async def review_here(self, request: AdmissionRequest) -> Decision:
        """The answer of this replica alone, for one that has been asked by another."""
        return await self._review(request, self._leaderless)

    async def _review(self, request: AdmissionRequest, elsewhere: Answer) -> Decision:
        target = target_of(request)
        known = self._caches.pods.get(target.key)
        if known is not None and target.uid in ("", known.uid) and not self._ours(known):
            self._metrics.binds.labels("passed", "").inc()
            return grant(target, {})
        with self._metrics.bind_seconds.time():
            return await self._review_ours(request, target, known, elsewhere)

    async def _leaderless(self, _request: AdmissionRequest) -> Decision:
        return self._refused(reasons.NO_LEADER, "this replica does not lead; the scheduler will try again")

    async def _review_ours(
        self, request: AdmissionRequest, target: Target, known: Pod | None, elsewhere: Answer
    ) -> Decision:
        problem = obstacle(target, known)
        if problem is not None:
            # The cache may lag behind the scheduler's, which has just seen the pod come, or its gate go.
            try:
                known = await self._read(target)
            except errors.KubeError as error:
                text = f"pod {target.key} cannot be read: {errors.describe(error)}"
                return self._refused(reasons.API_UNAVAILABLE, text)
            problem = obstacle(target, known)
        if known is not None and not self._ours(known):
            self._metrics.binds.labels("passed", "").inc()
            return grant(target, {})
        if problem is not None:
            return self._refused(problem.code, problem.detail)
        assert known is not None, "a pod that does not exist is an obstacle"
        return self._decide(request, target, known) if self.leading else await elsewhere(request)

    def _ours(self, view: Pod) -> bool:
        return view.asks_mgpu and self._settings.features.mgpu

    async def _read(self, target: Target) -> Pod | None:
        if self._reader is None:
            return self._caches.pods.get(target.key)
        try:
            return pod.project(
                await self._reader.get(PODS, target.name, target.namespace, timeout_s=READ_TIMEOUT_S)
            )
        except errors.NotFound:
            return None

    def _decide(self, request: AdmissionRequest, target: Target, view: Pod) -> Decision:
        ledger = self._caches.ledger
        node: Node | None = ledger.nodes.get(target.node)
        if node is None:
            return self._refused(reasons.NODE_NOT_FOUND, f"node {target.node} does not exist")
        booked = ledger.pod(view.uid)
        if booked is not None and booked.bound:
            if booked.node_name != target.node:
                # A bind that was granted may still be stored, however late and whatever the scheduler was told; its
                # cards stay taken until the watch shows the outcome or the grant runs out.
                text = f"a bind of pod {target.key} to node {booked.node_name} is under way"
                return self._refused(reasons.POD_ALREADY_BOUND, text)
            # The scheduler or the API server asks again: the same answer, whatever happened meanwhile.
            if not request.dry_run and view.uid in self._assumed:
                self._keep(view.uid)
            return self._granted(target, _records_of(booked))
        ask = mgpu_ask(view)
        if ask is None:
            return grant(target, {})
        answer = decide(view, ask, node, ledger.pods_on(node.name), self._settings)
        if not isinstance(answer, Granted):
            return self._refused(answer.code, answer.message)
        if not request.dry_run:
            self._assume(view, target.node, answer)
        return self._granted(target, dict(answer.annotations))

    def _assume(self, view: Pod, node: str, answer: Granted) -> None:
        annotations = {**view.annotations, **answer.annotations}
        self._caches.ledger.assume(replace(view, node_name=node, annotations=annotations))
        self._keep(view.uid)

    def _keep(self, uid: str) -> None:
        self._assumed[uid] = asyncio.get_running_loop().time() + ASSUMED_FOR_S

    def expire(self) -> None:
        """Takes back grants whose bind was never stored; to be called every now and then while leading."""
        now = asyncio.get_running_loop().time()
        for uid in [uid for uid, deadline in self._assumed.items() if deadline <= now]:
            del self._assumed[uid]
            self._caches.ledger.forget(uid)
            self._caches.notify()

    def _granted(self, target: Target, records: dict[str, str]) -> Decision:
        self._metrics.binds.labels("granted", "").inc()
        return grant(target, records)

    def _refused(self, code: str, message: str) -> Decision:
        self._metrics.binds.labels("denied", code).inc()
        _LOG.info("bind refused", extra={"reason": code, "detail": message})
        return refuse(code, message)


def _records_of(view: Pod) -> dict[str, str]:
    return {
        key: value
        for key, value in view.annotations.items()
        if key == names.ASSUMED_ANNOTATION or key.startswith(names.GPU_INDEX_PREFIX)
    }
