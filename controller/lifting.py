"""The leader's loop: run the quota pass where something changed, and say why the rest waits.

The pass gives way to all others every few milliseconds, and writes nothing itself: what it lifts goes to the LiftWriter.
"""

import asyncio
from contextlib import closing

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lift_writing import LiftWriter
from controller.metrics import Metrics
from core.plan.decision import Decision, Hold
from core.plan.lift import Planner
from core.steps import Steps, batched
from kube.calls import LiftClient
from kube.lease import Term

_LOOKED_AT_IN_A_STEP = 1000
"""Queues that are put on the list of those to decide on in about half a millisecond."""


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
        self._wanted = asyncio.Event()
        """Set when somebody is to be decided on, or his lift to be taken back."""
        self._announcements = announcements
        self._metrics = metrics
        self._settle_s = settle_s
        self._writer = LiftWriter(client, caches, metrics, self._wanted.set)
        caches.ledger.wakeups.follow_queues(self._wanted.set)

    async def run(self, term: Term) -> None:
        """Decides until cancelled. At the start every queue is looked at once.

        What is booked then stays booked: the caches give it back, once nobody else can be granted it, see Leader.
        """
        await self._caches.turns.finish(self._all_looked_at())
        planner = Planner(self._caches.ledger)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._writer.run(planner, term), name="writing lifts")
            while True:
                await self._passes(planner)
                await self._wanted.wait()
                # What comes in a burst is decided on together.
                await asyncio.sleep(self._settle_s)

    def _all_looked_at(self) -> Steps[None]:
        """There are as many accounts as pods where each pod names another queue."""
        ledger = self._caches.ledger
        for some in batched(list(ledger.accounts), _LOOKED_AT_IN_A_STEP):
            ledger.wakeups.look_at(*some)
            yield

    async def _passes(self, planner: Planner) -> None:
        """One pass after the other, until nothing is left to decide on. Each has an end, whatever happens meanwhile."""
        await self._caches.settled()
        while True:
            # Before either is looked at: whatever comes later begins another pass.
            self._wanted.clear()
            await self._writer.give_back()
            queues = self._caches.ledger.wakeups.take_queues()
            if not queues:
                return
            with self._metrics.pass_seconds.time():
                await self._decide(planner, queues)
            if self._wanted.is_set():
                # Others come to their turn between two passes.
                await asyncio.sleep(0)

    async def _decide(self, planner: Planner, queues: list[str]) -> None:
        with closing(self._deciding(planner, queues)) as steps:
            await self._caches.turns.finish(steps)

    def _deciding(self, planner: Planner, queues: list[str]) -> Steps[None]:
        with closing(planner.run(queues)) as decisions:
            for decision in decisions:
                if decision is not None:
                    self._carry_out(decision)
                yield

    def _carry_out(self, decision: Decision) -> None:
        if isinstance(decision, Hold):
            if self._caches.ledger.entry(decision.pod.uid) is None:
                return  # gone while the pass gave way
            self._metrics.held(decision.queue, decision.why.code)
            self._announcements.held(decision)
            return
        self._announcements.lifted(decision)
        self._writer.write(decision)
