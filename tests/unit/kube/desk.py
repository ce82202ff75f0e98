"""Works that last until they are let go, and a work queue with a lane for each namespace."""

import asyncio
from collections.abc import Callable

from kube.workqueue import Work, WorkQueue


class Desk:
    """Works that last until they are let go, and what was begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.running: set[str] = set()
        self.most = 0
        self.failing: Callable[[str], float | None] = lambda _: None
        self.gates: dict[str, asyncio.Event] = {}

    def hang(self, *keys: str) -> None:
        for key in keys:
            self.gates[key] = asyncio.Event()

    async def work(self, key: str) -> float | None:
        assert key not in self.running, "two workers on one key"
        self.begun.append(key)
        self.running.add(key)
        self.most = max(self.most, len(self.running))
        try:
            if key in self.gates:
                await self.gates[key].wait()
            return self.failing(key)
        finally:
            self.running.discard(key)


async def during(queue: WorkQueue[str], seconds: float) -> None:
    """Runs the queue for so long."""
    try:
        async with asyncio.timeout(seconds):
            await queue.run()
    except TimeoutError:
        return


def by_namespace(key: str) -> str:
    return key.partition("/")[0]


def queue_of(work: Work[str], slots: int = 4, per_lane: int | None = None) -> WorkQueue[str]:
    return WorkQueue(work, slots=slots, per_lane=per_lane, lane=by_namespace)
