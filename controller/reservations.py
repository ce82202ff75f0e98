"""The leader's watch over reserved pods: who has quota and no node for too long is told, and deleted where that is set."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial

from controller.announcements import Announcements
from controller.caches import Caches
from controller.evictions import Evictions
from controller.metrics import Metrics
from controller.unfinished import GangWatch
from core.objects import Pod
from core.plan.reservations import Overdue, Reservations, overdue_notice
from core.settings import Settings
from core.stage import Stage
from kube.calls import Deleter
from kube.lease import Term

_TICK_S = 0.01
"""Added to every wait, so that two clocks that differ by a hair do not make a loop."""

_NOTED_US = 1_000_000
"""The API server notes in whole seconds when a pod was lifted; it was so at the latest at the end of that second."""


class ReservationWatch:
    """Sleeps until the next pod is due. `now` is the wall clock in microseconds since 1970.

    All waiting is measured on this process' own monotonic clock, from the moment at which it first saw a pod reserved, as a
    standby too. A pod is deleted only when it was seen reserved for all of `reservation.evictAfter`: no clock that is wrong
    or jumps, here or at an API server, brings that forward; a process that starts begins anew. The warning takes in
    for how long the pod had been reserved before that, by the wall clock at that moment, so that it need not wait again.
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
        self._caches = caches
        self._announcements = announcements
        self._settings = settings.reservation
        self._now = now
        self._reservations = Reservations(self._settings, caches.ledger.stages)
        self._evictions = Evictions(client, metrics, self._reservations.condemned, self._say_evicted)
        self._gangs = GangWatch(
            client, caches, announcements, metrics, settings, self._reservations.reserved_since
        )
        self._sooner = asyncio.Event()
        self._awaited: int | None = None
        caches.pods.subscribe(self._pod_changed)

    def late(self) -> Iterator[Pod]:
        """The pods that have been reserved for too long, as far as this replica has looked."""
        return self._reservations.late()

    def unfinished(self) -> Collection[str]:
        """The gangs that were cut short, as far as this replica has looked, by `namespace/name`."""
        return self._gangs.known()

    async def run(self, term: Term) -> None:
        """Watches until cancelled."""
        # Nobody is told meanwhile: who is late already is taken for one of the term before, and would be told again.
        await self._caches.turns.finish(self._reservations.restart())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._evictions.run(term), name="evictions")
            tasks.create_task(self._gangs.run(term), name="unfinished gangs")
            await self._watch()

    async def _watch(self) -> None:
        while True:
            self._sooner.clear()
            for overdue in self._reservations.take_due(_moment()):
                if overdue.evict:
                    self._evictions.add(overdue.pod.uid)
                else:
                    self._say(overdue)
                # Others come to their turn between two pods.
                await asyncio.sleep(0)
            await self._wait()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._reservations.put_pod(new, partial(self._began, old, new))
        elif old is not None:
            self._reservations.drop_pod(old.uid)
        due = self._reservations.next_due()
        if due is not None and (self._awaited is None or due < self._awaited):
            self._sooner.set()

    def _began(self, old: Pod | None, new: Pod) -> tuple[int, int]:
        """Since when a pod that changes now has been reserved, and since when that is certain."""
        seen, stages = _moment(), self._caches.ledger.stages
        # Who held nothing for gates of others has held quota since they went, whenever it lost ours.
        held_nothing = old is not None and old.uid == new.uid and stages.of(old) is Stage.IGNORED
        return seen if held_nothing else seen - max(0, self._now() - new.released - _NOTED_US), seen

    async def _wait(self) -> None:
        """Returns when the next pod is due, or when another one is due before that."""
        self._awaited = self._reservations.next_due()
        delay_s = None if self._awaited is None else max(0, self._awaited - _moment()) / 1e6 + _TICK_S
        try:
            async with asyncio.timeout(delay_s):
                await self._sooner.wait()
        except TimeoutError:
            return

    def _say(self, overdue: Overdue) -> None:
        pod, queue = overdue.pod, self._caches.ledger.attribution(overdue.pod).queue
        reason, note = overdue_notice(overdue, queue, self._settings)
        (self._announcements.evicted if overdue.evict else self._announcements.overdue)(pod, reason, note)

    def _say_evicted(self, pod: Pod) -> None:
        self._say(Overdue(pod, evict=True))


def _moment() -> int:
    """The monotonic clock in microseconds."""
    return round(asyncio.get_running_loop().time() * 1e6)
