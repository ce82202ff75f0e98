"""A DeviceClass that goes away: for how long its extended resource is still charged as before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller.caches import Caches
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.settings import Settings
from kube.class_grace import GRACE_S
from kube.client import Json
from kube.resources import DEVICE_CLASSES, NODES, PODS, QUEUES
from tests.builders import a_node, a_pod, a_queue
from tests.fakes.apiserver import background
from tests.fakes.livesource import LiveSource

pytestmark = pytest.mark.looptime

GPU = "example.com/gpu"
RUNNING = a_pod("running").limit(GPU, 1).charged("q").bound_to("n", phase="Pending")
WAITING = a_pod("waiting").limit(GPU, 1).in_queue("q").gated()


def a_class(name: str = "gpu", resource: str = GPU) -> Json:
    return {"metadata": {"name": name, "uid": name}, "spec": {"extendedResourceName": resource}}


class World:
    """A queue with one device, which is in use, and a pod that waits for it."""

    def __init__(self) -> None:
        self.source = LiveSource()
        self.source.put(NODES, a_node("n").put("metadata", "uid", value="n").build())
        quota = {"capability": {name: {"count": 1} for name in ("gpu", "other")}}
        self.source.put(QUEUES, a_queue("q").devices(quota).put("metadata", "uid", value="q").build())
        self.source.put(DEVICE_CLASSES, a_class())
        for pod in (RUNNING, WAITING):
            self.source.put(PODS, pod.build())
        self.caches = Caches(self.source, Settings())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background(self.caches.run()):
            await self.caches.wait_synced()
            await self.caches.settled()
            yield

    def lifted(self) -> list[str]:
        """Who is let in now."""
        found = Planner(self.caches.ledger).decide("q")
        return [decision.pod.name for decision in found if isinstance(decision, Lift)]


async def test_while_its_class_is_reinstalled_nobody_is_let_in_beyond_the_quota_of_it() -> None:
    world = World()
    async with world.running():
        world.source.remove(DEVICE_CLASSES, "gpu")
        await asyncio.sleep(GRACE_S / 2)
        assert world.lifted() == []
        world.source.put(DEVICE_CLASSES, a_class())
        await asyncio.sleep(2 * GRACE_S)
        assert world.lifted() == []


async def test_a_class_that_goes_again_has_all_of_the_grace_again() -> None:
    world = World()
    async with world.running():
        world.source.remove(DEVICE_CLASSES, "gpu")
        await asyncio.sleep(GRACE_S - 10)
        world.source.put(DEVICE_CLASSES, a_class())
        await asyncio.sleep(5)
        world.source.remove(DEVICE_CLASSES, "gpu")
        await asyncio.sleep(GRACE_S - 10)
        assert world.lifted() == []


async def test_after_the_grace_a_class_that_is_gone_holds_up_nobody_and_those_who_decide_are_told() -> None:
    world = World()
    async with world.running():
        world.source.remove(DEVICE_CLASSES, "gpu")
        await asyncio.sleep(GRACE_S - 10)
        world.caches.ledger.wakeups.take_queues()
        await asyncio.sleep(20)
        assert "q" in world.caches.ledger.wakeups.take_queues()
        assert world.lifted() == ["waiting"]


async def test_a_class_that_a_new_list_lacks_is_away_as_one_whose_deletion_was_seen() -> None:
    world = World()
    async with world.running():
        world.source.cut_off()
        world.source.remove(DEVICE_CLASSES, "gpu")
        await world.caches.device_classes.refresh()
        assert "gpu" not in world.caches.ledger.devices.book.classes
        assert world.lifted() == []
        await asyncio.sleep(GRACE_S + 10)
        assert world.lifted() == ["waiting"]


@pytest.mark.parametrize("resource", ["", "example.com/npu"])
async def test_a_resource_that_its_class_does_not_name_any_more_has_the_grace_too(resource: str) -> None:
    world = World()
    async with world.running():
        world.source.put(DEVICE_CLASSES, a_class(resource=resource))
        await asyncio.sleep(GRACE_S - 10)
        assert world.lifted() == []
        await asyncio.sleep(20)
        assert world.lifted() == ["waiting"]


async def test_another_class_takes_the_resource_over_at_once_with_its_own_quota() -> None:
    """It has a device that nobody uses; what runs is charged there too, as nobody knows which claim it will have."""
    world = World()
    async with world.running():
        world.source.remove(DEVICE_CLASSES, "gpu")
        world.source.put(DEVICE_CLASSES, a_class("other"))
        await asyncio.sleep(1)
        assert world.caches.ledger.devices.allocated("q") == {"deviceclass/other": 1000}
        assert world.lifted() == []
