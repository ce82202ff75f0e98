"""The leader's other loop: Queue status shows what each queue uses, written on change only."""

import asyncio
import logging
from dataclasses import dataclass

from controller.announcements import Announcements
from controller.caches import Caches
from controller.metrics import Metrics
from controller.writing import Patcher
from core.names import FIELD_MANAGER
from core.objects import Queue
from core.queues.notices import queue_notices
from core.queues.status import published, status_patch
from kube import errors
from kube.client import PatchType
from kube.lease import Term
from kube.resources import QUEUES

_LOG = logging.getLogger(__name__)

SETTLE_S = 0.2
"""Changes of one burst are published together."""

_REPEAT_FIRST_S = 2.0
_REPEAT_MAX_S = 300.0
_TIMEOUT_S = 4.0


@dataclass(slots=True)
class _Written:
    """What was last written for a queue, when, and how long to wait before writing the same again."""

    wanted: dict[str, str]
    at: float
    repeat_s: float

    @property
    def due(self) -> float:
        """When the same may be written again."""
        return self.at + self.repeat_s


class Publisher:
    """Keeps `status.allocated` of every queue right while it leads. One instance serves one term."""

    def __init__(
        self, client: Patcher, caches: Caches, announcements: Announcements, metrics: Metrics
    ) -> None:
        self._client = client
        self._caches = caches
        self._changed = caches.signal()
        self._announcements = announcements
        self._metrics = metrics
        self._written: dict[str, _Written] = {}
        self._later: set[str] = set()

    async def run(self, term: Term) -> None:
        """Publishes until cancelled. At the start every queue is looked at once."""
        ledger = self._caches.ledger
        ledger.wakeups.publish(*ledger.queues, *ledger.accounts)
        while True:
            self._changed.clear()
            names = sorted(ledger.wakeups.take_figures() | self._due())
            for name in names:
                if term.valid():
                    await self._publish(name)
            await asyncio.sleep(SETTLE_S)
            await self._wait()

    def _due(self) -> set[str]:
        now = asyncio.get_running_loop().time()
        return {name for name in self._later if now >= self._written[name].due}

    async def _wait(self) -> None:
        """Returns at the next change, or when a repetition is due."""
        due = min((self._written[name].due for name in self._later), default=None)
        try:
            async with asyncio.timeout_at(due):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _publish(self, name: str) -> None:
        ledger = self._caches.ledger
        queue, account = ledger.queues.get(name), ledger.accounts.get(name)
        for entry in account.uncounted_pods.values() if account else ():
            self._announcements.uncounted(entry)
        if queue is None:
            self._written.pop(name, None)
            self._later.discard(name)
            return
        self._announcements.about_queue(queue, queue_notices(ledger, name))
        wanted = {**published(account.allocated if account else {}), **ledger.devices.published(queue)}
        patch = status_patch(queue, wanted)
        if patch is None:
            self._later.discard(name)
        elif self._may_write(name, wanted):
            await self._write(queue, wanted, patch)

    def _may_write(self, name: str, wanted: dict[str, str]) -> bool:
        """Whether to write now. What was written already and has gone again waits longer each time.

        Somebody who replaces the whole status once a second without us (the Volcano scheduler while our webhook is
        away) would otherwise be fought at that pace.
        """
        written = self._written.get(name)
        if written is None or written.wanted != wanted:
            return True
        if asyncio.get_running_loop().time() < written.due:
            self._later.add(name)
            return False
        return True

    async def _write(self, queue: Queue, wanted: dict[str, str], patch: dict[str, object]) -> None:
        now = asyncio.get_running_loop().time()
        before = self._written.get(queue.name)
        repeat_s = _REPEAT_FIRST_S
        if before is not None and before.wanted == wanted:
            # The longer a written status has stood, the less it counts as a fight.
            repeat_s = (
                min(_REPEAT_MAX_S, 2 * before.repeat_s) if now - before.at < 4 * before.repeat_s else repeat_s
            )
        self._written[queue.name] = _Written(wanted, now, repeat_s)
        self._later.add(queue.name)
        try:
            await self._client.patch(
                QUEUES,
                queue.name,
                patch,
                patch_type=PatchType.MERGE,
                subresource="status",
                field_manager=FIELD_MANAGER,
                timeout_s=_TIMEOUT_S,
            )
        except errors.NotFound:
            return
        except errors.KubeError as error:
            self._metrics.status_writes.labels("failed").inc()
            _LOG.warning(
                "queue status not written", extra={"queue": queue.name, "error": errors.describe(error)}
            )
            return
        self._metrics.status_writes.labels("done").inc()
