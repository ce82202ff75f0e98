"""A second look before a pod is told that no node fits; the clock is virtual."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.caches import Caches
from controller.extender import Extender
from controller.extender_metrics import ExtenderMetrics
from controller.extender_patience import PART, SAVED_S, WAIT_S
from tests.unit.controller.cluster import show
from tests.unit.controller.extender_server import filled
from tests.unit.core.crossquota.ruling import gpu_node
from tests.unit.core.extender.asking import by_name, cpu_pod

pytestmark = pytest.mark.looptime

REFUSED = by_name(cpu_pod(cpu=2), "gpu")


class Scheduler:
    """Asks for a node, and measures how long the answer takes."""

    def __init__(self) -> None:
        self.caches: Caches = filled()
        self._extender = Extender(self.caches, ExtenderMetrics(CollectorRegistry()))

    async def asks(self, body: Any = REFUSED) -> tuple[list[str], float]:
        """The nodes that fit, and the seconds that it took."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        looked = await self._extender._turns.finish(self._extender._verdicts(body))
        answer = await self._extender._filter(looked)
        return answer["NodeNames"], round(loop.time() - started, 3)


async def after(seconds: float, what: Callable[[], Any], then: Awaitable[Any]) -> Any:
    """Lets something happen while an answer is awaited."""
    asyncio.get_running_loop().call_later(seconds, what)
    return await then


async def test_a_change_that_comes_in_a_moment_is_still_seen() -> None:
    scheduler = Scheduler()
    gone = lambda: show(scheduler.caches.pods, "ml/full", None)  # noqa: E731
    assert await after(0.03, gone, scheduler.asks()) == (["gpu"], 0.03)


async def test_a_limit_that_was_raised_is_seen() -> None:
    scheduler = Scheduler()
    wider = gpu_node("gpu").annotation("volcano.sh/crossquota-cpu", "9").view()
    raised = lambda: show(scheduler.caches.nodes, "gpu", wider)  # noqa: E731
    assert await after(0.05, raised, scheduler.asks()) == (["gpu"], 0.05)


async def test_a_node_that_is_just_coming_is_seen() -> None:
    scheduler = Scheduler()
    comes = lambda: show(scheduler.caches.nodes, "new", gpu_node("new").view())  # noqa: E731
    assert await after(0.02, comes, scheduler.asks(by_name(cpu_pod(cpu=2), "new"))) == (["new"], 0.02)


async def test_other_changes_do_not_end_the_wait() -> None:
    scheduler = Scheduler()
    other = lambda: show(scheduler.caches.pods, "ml/o", cpu_pod("o").view())  # noqa: E731
    asyncio.get_running_loop().call_later(0.01, other)
    gone = lambda: show(scheduler.caches.pods, "ml/full", None)  # noqa: E731
    assert await after(0.03, gone, scheduler.asks()) == (["gpu"], 0.03)


async def test_without_a_change_it_is_over_soon() -> None:
    assert await Scheduler().asks() == ([], WAIT_S)


async def test_a_pod_that_fits_somewhere_waits_for_nothing() -> None:
    scheduler = Scheduler()
    show(scheduler.caches.nodes, "two", gpu_node("two").view())
    assert await scheduler.asks(by_name(cpu_pod(cpu=2), "gpu", "two")) == (["two"], 0.0)
    assert await scheduler.asks(by_name(cpu_pod(cpu=2))) == ([], 0.0)


async def test_many_pods_that_fit_nowhere_are_not_all_waited_for() -> None:
    scheduler, loop = Scheduler(), asyncio.get_running_loop()
    for _ in range(1000):
        await scheduler.asks()
    assert loop.time() <= SAVED_S / (1 - PART) + 0.1
    assert (await scheduler.asks())[1] < WAIT_S
    await asyncio.sleep(SAVED_S / PART)
    assert await scheduler.asks() == ([], WAIT_S)
