"""What a replica does while it leads, in the order that keeps two leaders from ever contradicting each other."""

import asyncio
import logging

from controller.auditing import Auditor
from controller.binding import BindingHook
from controller.caches import Caches
from controller.discovery import NodeWatch
from controller.flight import WRITE_TIMEOUT_S
from controller.lifting import Lifter
from controller.metrics import QueueSeries
from controller.nominations import Nominations
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from controller.usage_keeping import UsageKeeper
from core.queues.ledger import Ledger
from core.stage import Stage
from kube.lease import Resigned, Term

_LOG = logging.getLogger(__name__)

QUIET_S = WRITE_TIMEOUT_S + 1.0
"""How long a leader waits before it lists what a former one has left: nothing that it sees free may still be taken by then.

A lift of the former leader may hang in the API server, in somebody's webhook for instance, while its process is stopped or
cut off; its resourceVersion does not keep it from being stored while the pod is as it was. But the leader sent it before the
renew deadline, 5 s before anybody else can lead, and nothing is stored WRITE_TIMEOUT_S after it has arrived, see kube.client.
So 5 s are left for its way through the network, and one for being sent again with new credentials. A leader that gives the
Lease back has closed its connections by then. Where the Lease was deleted, whoever makes a new one waits as long before this
as for one that was not renewed, see Term.shared_s. Binds are requests of others and may take longer, see
controller.inheritance.
"""

_REFRESH_S = 60.0
"""How long a list of everything may take: as long as the client waits for one page of it ..."""

_REFRESH_POD_S = 0.001
"""... and for each pod twice what it takes on a slow machine, so that a large cluster is not given up for its size."""


class Leader:
    """One replica's leading, term after term."""

    def __init__(
        self,
        caches: Caches,
        lifter: Lifter,
        nominations: Nominations,
        publisher: Publisher,
        repairer: Repairer,
        reservations: ReservationWatch,
        stranded: StrandedPods,
        definition: QueueDefinitionKeeper,
        queue_records: QueueRecords,
        hook: BindingHook,
        series: QueueSeries,
        auditor: Auditor,
        nodes: NodeWatch,
        usage: UsageKeeper,
    ) -> None:
        self._caches = caches
        self._lifter = lifter
        self._nominations = nominations
        self._publisher = publisher
        self._repairer = repairer
        self._reservations = reservations
        self._stranded = stranded
        self._definition = definition
        self._queue_records = queue_records
        self._hook = hook
        self._series = series
        self._auditor = auditor
        self._nodes = nodes
        self._usage = usage
        self._gave_up = False

    async def lead(self, term: Term) -> None:
        """Leads until cancelled. Raises Resigned when the cluster cannot be caught up with in reasonable time."""
        shared_s = term.shared_s()
        alone_from = asyncio.get_running_loop().time() + shared_s
        followed = term.epoch > 0 or shared_s > 0 or anything_let_in(self._caches.ledger)
        if followed:
            # There was a leader before, even if somebody has deleted its Lease since, which it may not have noticed. Its lifts
            # may not have reached our watches yet, so everything is caught up with, once no more of them can be stored.
            await asyncio.sleep(shared_s + QUIET_S)
            await self._catch_up()
        try:
            # What this process has granted in a term before is where the cluster has it by now.
            await self._caches.sums_settled()
            await self._queue_records.begin(term)
            if followed:
                await self._hook.inherit(term, alone_from)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._queue_records.run(), name="queue records")
                await self._queue_records.written()
                _LOG.info("deciding", extra={"epoch": term.epoch})
                self._hook.start(term)
                self._series.leading = True
                tasks.create_task(self._lifter.run(term), name="lifting")
                tasks.create_task(self._nominations.run(term), name="nominations")
                tasks.create_task(self._publisher.run(term), name="publishing")
                tasks.create_task(self._repairer.run(term), name="repair")
                tasks.create_task(self._reservations.run(term), name="reservations")
                tasks.create_task(self._stranded.run(), name="stranded pods")
                tasks.create_task(self._auditor.run(), name="audit")
                tasks.create_task(self._nodes.run(), name="nodes")
                tasks.create_task(self._definition.run(term), name="queue definition")
                tasks.create_task(self._usage.run(term), name="usage")
                await self._hook.run()
        finally:
            # However a loop has ended: what the loops have booked is given back once nobody is granted it any more.
            self._hook.stop()
            self._caches.give_back()
            self._series.leading = False
            self._queue_records.end()

    def stuck(self) -> str | None:
        """Why this process could not lead the last time and cannot now: a live condition, see Health."""
        missing = self._caches.refreshing() if self._gave_up else []
        return f"leadership was given up: {', '.join(missing)} cannot be listed" if missing else None

    async def _catch_up(self) -> None:
        limit_s = _REFRESH_S + _REFRESH_POD_S * len(self._caches.pods)
        try:
            async with asyncio.timeout(limit_s):
                await self._caches.catch_up()
        except TimeoutError:
            self._gave_up = True
            missing = ", ".join(self._caches.refreshing())
            raise Resigned(f"{missing} not listed within {limit_s:.0f} s") from None
        self._gave_up = False


def anything_let_in(ledger: Ledger) -> bool:
    """Whether any pod of ours is past its gate: somebody has led before, or pods came before us."""
    return any(entry.stage is not Stage.WAITING for entry in ledger.entries())
