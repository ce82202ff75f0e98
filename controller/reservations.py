"""The leader's watch over reserved pods: who has quota and no node for too long is told, and deleted where that is set."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from controller.announcements import Announcements
from controller.caches import Caches
from controller.metrics import Metrics
from core.objects import Pod
from core.plan.reservations import Overdue, Reservations, overdue_notice
from core.settings import Settings
from kube import errors
from kube.client import Json
from kube.lease import Term
from kube.resources import PODS, Resource

_LOG = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 4.0
"""As for lifts: no write of a leader that has lost its lease may arrive when the next one decides."""

_TICK_S = 0.01
"""Added to every wait, so that two clocks that differ by a hair do not make a loop."""


class Deleter(Protocol):
    """The delete call of kube.client.Client."""

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        """See Client.delete."""


class ReservationWatch:
    """Sleeps until the next pod is due. `now` is the wall clock in microseconds since 1970.

    The times that it is compared with are the API server's, so a skew between the two moves what happens by as much.
    """

    def __init__(
        self,
        client: Deleter,
        caches: Caches,
        announcements: Announcements,
        metrics: Metrics,
        settings: Settings,
        now: Callable[[], int],
    ) -> None:
        self._client = client
        self._caches = caches
        self._announcements = announcements
        self._metrics = metrics
        self._settings = settings.reservation
        self._now = now
        self._reservations = Reservations(self._settings)
        self._sooner = asyncio.Event()
        self._awaited: int | None = None
        caches.pods.subscribe(self._pod_changed)

    def late(self) -> list[Pod]:
        """The pods that have been reserved for too long, as far as this replica has looked."""
        return self._reservations.late()

    async def run(self, term: Term) -> None:
        """Watches until cancelled."""
        self._reservations.restart()
        while True:
            self._sooner.clear()
            for overdue in self._reservations.take_due(self._now()):
                if not overdue.evict:
                    self._say(overdue)
                elif term.valid():
                    await self._evict(overdue)
                # Others come to their turn between two pods.
                await asyncio.sleep(0)
            await self._wait()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._reservations.put_pod(new)
        elif old is not None:
            self._reservations.drop_pod(old.uid)
        due = self._reservations.next_due()
        if due is not None and (self._awaited is None or due < self._awaited):
            self._sooner.set()

    async def _wait(self) -> None:
        """Returns when the next pod is due, or when another one is due before that."""
        self._awaited = self._reservations.next_due()
        delay_s = None if self._awaited is None else max(0, self._awaited - self._now()) / 1e6 + _TICK_S
        try:
            async with asyncio.timeout(delay_s):
                await self._sooner.wait()
        except TimeoutError:
            return

    def _say(self, overdue: Overdue) -> None:
        queue = self._caches.ledger.attribution(overdue.pod).queue
        reason, note = overdue_notice(overdue, queue, self._settings)
        self._announcements.overdue(overdue.pod, reason, note)

    async def _evict(self, overdue: Overdue) -> None:
        """Deletes a pod as it was when it was judged: should it have got a node meanwhile, it stays.

        Whatever the answer, a pod that is still there is due again.
        """
        pod, outcomes = overdue.pod, self._metrics.evictions
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
        else:
            outcomes.labels("done").inc()
            _LOG.info("reserved pod deleted", extra={"pod": pod.key})
            self._say(overdue)
