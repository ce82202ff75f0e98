"""What a replica does while it leads, in the order that keeps two leaders from ever contradicting each other."""

import asyncio
import logging

from controller.binding import BindingHook
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import QueueSeries
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from kube.lease import Term

_LOG = logging.getLogger(__name__)


class Leader:
    """One replica's leading, term after term.

    `quiet_s` is how long the API server waits for the binding hook: the last grant of a former leader is stored or lost
    by then.
    """

    def __init__(
        self,
        caches: Caches,
        lifter: Lifter,
        publisher: Publisher,
        repairer: Repairer,
        reservations: ReservationWatch,
        definition: QueueDefinitionKeeper,
        hook: BindingHook,
        series: QueueSeries,
        *,
        quiet_s: float,
    ) -> None:
        self._caches = caches
        self._lifter = lifter
        self._publisher = publisher
        self._repairer = repairer
        self._reservations = reservations
        self._definition = definition
        self._hook = hook
        self._series = series
        self._quiet_s = quiet_s

    async def lead(self, term: Term) -> None:
        """Leads until cancelled."""
        if term.epoch > 0:
            # There was a leader before. Its lifts may not have reached our watches yet, so everything is listed
            # anew; its last grant may still be on its way into a bind, so the list comes after that time.
            await asyncio.sleep(self._quiet_s)
            await self._caches.refresh()
        _LOG.info("deciding", extra={"epoch": term.epoch})
        self._hook.start(term)
        self._series.leading = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._lifter.run(term), name="lifting")
                tasks.create_task(self._publisher.run(term), name="publishing")
                tasks.create_task(self._repairer.run(term), name="repair")
                tasks.create_task(self._reservations.run(term), name="reservations")
                tasks.create_task(self._definition.run(term), name="queue definition")
                try:
                    await self._hook.run()
                finally:
                    # Before the loops end: they take back what is assumed, and nobody may be granted it then.
                    self._hook.stop()
        finally:
            self._hook.stop()
            self._series.leading = False
