"""The leader's watch over gangs that were cut short: they are told, and give back what they hold where that is set."""

import asyncio
from collections.abc import Callable, Collection

from controller.announcements import Announcements
from controller.caches import Caches
from controller.evictions import Evictions
from controller.metrics import Metrics
from core.objects import Pod
from core.plan.unfinished import Unfinished, UnfinishedGangs, given_back_notice, unfinished_notice
from core.settings import Settings
from core.steps import Steps, each
from kube.calls import Deleter
from kube.lease import Term

_LOOK_S = 1.0
"""How often it is looked: a gang that is decided on is unfinished for less than that, and settings are in seconds."""

_TOLD_IN_A_STEP = 10
"""Members of which something is said in about half a millisecond."""


class GangWatch:
    """Looks once a second. `reserved_since` is by the same monotonic clock as here, see ReservationWatch.

    A gang gives back what it holds only when it was seen unfinished, and the member without a node, for all of
    `reservation.unfinishedAfter`; a new leader begins anew.
    """

    def __init__(
        self,
        client: Deleter,
        caches: Caches,
        announcements: Announcements,
        metrics: Metrics,
        settings: Settings,
        reserved_since: Callable[[str], int | None],
    ) -> None:
        self._caches = caches
        self._announcements = announcements
        self._settings = settings.reservation
        self._gangs = UnfinishedGangs(caches.ledger, settings.reservation, reserved_since)
        self._evictions = Evictions(client, metrics, self._gangs.condemned, self._say_given_back)

    def known(self) -> Collection[str]:
        """The gangs that are unfinished, as the last look has found them, by `namespace/name`."""
        return self._gangs.known

    async def run(self, term: Term) -> None:
        """Watches until cancelled."""
        self._gangs.restart()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._evictions.run(term), name="members given back")
            while True:
                await self._look(round(asyncio.get_running_loop().time() * 1e6))
                await asyncio.sleep(_LOOK_S)

    async def _look(self, now: int) -> None:
        turns = self._caches.turns
        await turns.finish(self._gangs.look(now))
        for gang in self._gangs.take_over():
            await turns.finish(each(gang.concerned, self._announcements.finished_member, _TOLD_IN_A_STEP))
        for gang in self._gangs.take_late(now):
            await turns.finish(self._told(gang))
        for pod in await turns.finish(self._gangs.take_condemned(now)):
            self._evictions.add(pod.uid)

    def _told(self, gang: Unfinished) -> Steps[None]:
        """Says it on the PodGroup; without one on each member concerned that is still there."""
        words = unfinished_notice(gang, self._settings)
        if gang.group.stored:
            self._announcements.unfinished(gang.group, *words)
            return

        def tell(member: Pod) -> None:
            # As the cluster shows it: a lift that is tried is none yet.
            shown = self._caches.ledger.observed(member.uid)
            if shown is not None:
                self._announcements.unfinished_member(shown, *words)

        yield from each(gang.concerned, tell, _TOLD_IN_A_STEP)

    def _say_given_back(self, pod: Pod) -> None:
        queue = self._caches.ledger.attribution(pod).queue
        self._announcements.evicted(pod, *given_back_notice(pod, queue, self._settings))
