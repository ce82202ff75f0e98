"""The leader's look at its own books, every ten minutes: all that is wrong is counted and named in the log."""

import asyncio
import logging
from typing import Final

from controller.caches import Caches
from controller.metrics import Metrics
from core.queues.audit import audit
from core.queues.drift import Drift

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 600.0
FIRST_S: Final = 60.0
"""After that much time of leading: a new leader has other things to do."""

_NAMED: Final = 5
_KINDS: Final = ("pod", "sum")


class Auditor:
    """Audits while it leads."""

    def __init__(self, caches: Caches, metrics: Metrics) -> None:
        self._caches = caches
        self._metrics = metrics

    async def run(self) -> None:
        """Audits now and then, until cancelled; afterwards nothing is said of the books any more."""
        try:
            await asyncio.sleep(FIRST_S)
            while True:
                await self.audit()
                await asyncio.sleep(INTERVAL_S)
        finally:
            self._metrics.ledger_drift.clear()

    async def audit(self) -> list[Drift]:
        """Audits once, in slices; what is wrong, and for whom it may concern."""
        caches = self._caches
        await caches.settled()
        drifts = await caches.turns.finish(audit(caches.ledger, caches.pods.views))
        for kind in _KINDS:
            self._metrics.ledger_drift.labels(kind).set(sum(drift.kind == kind for drift in drifts))
        self._metrics.ledger_audits.inc()
        if drifts:
            named = [str(drift) for drift in drifts[:_NAMED]]
            _LOG.error("the books are wrong", extra={"places": len(drifts), "first": named})
        return drifts
