"""The definition of Queue must have `spec.dra`: without it the API server drops device quotas at every write, silently.

An installation or upgrade of Volcano brings a definition without the field. The webhook adds it in that very write; what
is here makes up for a webhook that was away, and says so.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge

from controller.announcements import Recorder
from controller.caches import Caches
from controller.metrics import Metrics
from core import reasons
from core.dra.schema import QUEUE_CRD, QueueDefinition, project
from core.names import FIELD_MANAGER
from core.settings import Settings
from kube import errors
from kube.backoff import Backoff
from kube.calls import Patcher
from kube.client import PatchType
from kube.events import Reference
from kube.informer import Informer
from kube.lease import Term
from kube.reflector import ListWatch
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Scope

_LOG = logging.getLogger(__name__)

_TIMEOUT_S = 4.0
_REPEAT_FIRST_S = 1.0
_REPEAT_MAX_S = 300.0
_CALM_S = 600.0
"""After so long a change of the definition is no fight about it any more."""

_REREAD_S = (1.0, 4.0, 25.0)
"""The API servers take a moment, each its own, before they read by another definition."""

_SAID = (
    "the definition of Queue lacked spec.dra and has been extended; a queue that was written meanwhile has lost what "
    "it had there, see the events of the queues"
)


class Client(ListWatch, Patcher, Protocol):
    """The calls of kube.client.Client that are made."""


def show_presence(registry: CollectorRegistry, present: Callable[[], bool]) -> None:
    """Has the registry show whether the definition of Queue has the field."""
    Gauge(
        "cardquota_dra_crd_field_present",
        "1 while the cluster's definition of Queue has spec.dra, 0 while it lacks the field or does not exist.",
        registry=registry,
    ).set_function(lambda: int(present()))


class QueueDefinitionKeeper:
    """Follows the one object, on every replica; the leader mends it. Does nothing where the setting is to leave it."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        recorder: Recorder,
        metrics: Metrics,
        settings: Settings,
        rng: Random | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._metrics = metrics
        self._rng = rng or Random()  # noqa: S311 - spreads waiting times, protects nothing
        self._changed = asyncio.Event()
        self._came_back = asyncio.Event()
        self._enabled = settings.features.dra and settings.dra.queue_crd == "extend"
        self.informer = Informer(
            client,
            CUSTOM_RESOURCE_DEFINITIONS,
            project,
            scope=Scope.named(QUEUE_CRD),
        )
        self.informer.subscribe(self._on_change)
        if self._enabled:
            show_presence(metrics.registry, self._present)

    @property
    def runnables(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What has to run on every replica, each until cancelled."""
        return (self.informer.run, self._reread) if self._enabled else ()

    async def run(self, term: Term) -> None:
        """Adds the field whenever it is missing, until cancelled.

        Somebody who takes it away again and again is not fought at that pace.
        """
        backoff = Backoff(self._rng, base_s=_REPEAT_FIRST_S, cap_s=_REPEAT_MAX_S)
        loop, written = asyncio.get_running_loop(), float("-inf")
        while True:
            self._changed.clear()
            definition = self.informer.get(QUEUE_CRD)
            if definition is None or not definition.extension or not term.valid():
                await self._changed.wait()
                continue
            if loop.time() - written >= _CALM_S:
                backoff.reset()
            asked_s = await self._extend(definition)
            written = loop.time()
            await asyncio.sleep(max(backoff.next_delay(), asked_s))

    def _present(self) -> bool:
        definition = self.informer.get(QUEUE_CRD)
        return definition is not None and not definition.extension

    def _on_change(self, old: QueueDefinition | None, new: QueueDefinition | None) -> None:
        self._changed.set()
        if old is not None and old.extension and new is not None and not new.extension:
            self._came_back.set()

    async def _reread(self) -> None:
        """Lists the queues anew when the field is back: what they kept there was not to be seen, and no watch tells."""
        while True:
            await self._came_back.wait()
            self._came_back.clear()
            for pause_s in _REREAD_S:
                await asyncio.sleep(pause_s)
                await self._caches.queues.refresh()

    async def _extend(self, definition: QueueDefinition) -> float:
        """Tries it once. Returns for how many seconds the API server asks to be left alone."""
        outcomes = self._metrics.definition_writes
        try:
            await self._client.patch(
                CUSTOM_RESOURCE_DEFINITIONS,
                QUEUE_CRD,
                [dict(operation) for operation in definition.extension],
                patch_type=PatchType.JSON,
                field_manager=FIELD_MANAGER,
                timeout_s=_TIMEOUT_S,
            )
        except errors.KubeError as error:
            outcomes.labels("failed").inc()
            _LOG.warning("definition of Queue not extended", extra={"error": errors.describe(error)})
            return errors.retry_after_s(error)
        outcomes.labels("done").inc()
        _LOG.info("definition of Queue extended", extra={"definition": QUEUE_CRD})
        regarding = Reference.of(CUSTOM_RESOURCE_DEFINITIONS, QUEUE_CRD, uid=definition.uid)
        self._recorder.emit(
            regarding, "Warning", reasons.QUEUE_DEFINITION_EXTENDED, _SAID, "ExtendDefinition"
        )
        return 0.0
