"""After a change of leaders no device is granted that a bind may take which the former leader has granted, and which may be stored yet."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.pods import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import binding, stored
from tests.unit.controller.test_inheritance import after

pytestmark = pytest.mark.looptime


def claiming(name: str) -> PodBuilder:
    return a_pod(name).claim("dev", name=f"of-{name}").in_queue("q").scheduler("another")


async def change(hook: BindingHook) -> None:
    hook.stop()
    await hook.inherit(after(), asyncio.get_running_loop().time())
    hook.start(term())


async def test_devices_are_not_granted_twice() -> None:
    pods = [claiming("a"), claiming("b")]
    them = caches([a_node("m1").view()], [pod.view() for pod in pods])
    show(them.queues, "q", a_queue("q").devices({"capability": {"gpu": {"count": 1}}}).view())
    them.ledger.devices.serve(True)
    for name in ("a", "b"):
        show(them.claims, f"ml/of-{name}", a_claim(f"of-{name}").exactly("r", "gpu").view())
    hook = BindingHook(Pods(*(pod.build() for pod in pods)), them, Settings(), Metrics(CollectorRegistry()))
    hook.start(term())
    first = await hook.review(binding("a"))
    assert first.allowed
    assert not (await hook.review(binding("b"))).allowed, "there is one"
    await change(hook)
    async with background(hook.run()):
        second = await hook.review(binding("b"))
        show(them.pods, "ml/a", stored(claiming("a"), first).view())
        if second.allowed:
            show(them.pods, "ml/b", stored(claiming("b"), second).view())
    assert them.ledger.devices.allocated("q") == {"deviceclass/gpu": 1000}
