"""The leader's loop: run the quota pass where something changed, and say why the rest waits.

The pass gives way to all others every few milliseconds, and writes nothing itself: what it lifts goes to the LiftWriter.
"""

import asyncio

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lift_writing import LiftWriter
from controller.metrics import Metrics
from controller.writing import LiftClient
from core.plan.decision import Decision, Hold
from core.plan.lift import Planner
from kube.lease import Term

SLICE_S = 0.005
"""So long the pass decides before others come to their turn; a single step of it takes a millisecond at the most."""


class Lifter:
    """Lifts gates while it leads. One instance serves one term after the other."""

    def __init__(
        self,
        client: LiftClient,
        caches: Caches,
        announcements: Announcements,
        metrics: Metrics,
        *,
        settle_s: float = 0.01,
    ) -> None:
        self._caches = caches
        self._changed = caches.signal()
        self._announcements = announcements
        self._metrics = metrics
        self._settle_s = settle_s
        self._writer = LiftWriter(client, caches, metrics)

    async def run(self, term: Term) -> None:
        """Decides until cancelled. At the start every queue is looked at once.

        What is booked then stays booked: the caches give it back, once nobody else can be granted it, see Leader.
        """
        ledger = self._caches.ledger
        ledger.wakeups.look_at(*ledger.accounts)
        planner = Planner(ledger)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._writer.run(planner, term), name="writing lifts")
            while True:
                await self._pass(planner)
                await self._changed.wait()
                # What comes in a burst is decided on together.
                await asyncio.sleep(self._settle_s)

    async def _pass(self, planner: Planner) -> None:
        self._changed.clear()
        await self._caches.settled()
        wakeups = self._caches.ledger.wakeups
        with self._metrics.pass_seconds.time():
            while queues := wakeups.take_queues():
                await self._decide(planner, queues)

    async def _decide(self, planner: Planner, queues: list[str]) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + SLICE_S
        for decision in planner.run(queues):
            if decision is not None:
                self._carry_out(decision)
            if clock() >= until:
                # Others come to their turn, the binding hook above all.
                await asyncio.sleep(0)
                until = clock() + SLICE_S
        await asyncio.sleep(0)

    def _carry_out(self, decision: Decision) -> None:
        if isinstance(decision, Hold):
            if self._caches.ledger.entry(decision.pod.uid) is None:
                return  # gone while the pass gave way
            self._metrics.holds.labels(decision.reason).inc()
            self._announcements.held(decision)
            return
        self._announcements.lifted(decision)
        self._writer.write(decision)
