"""The live view: what is known while lists come in, change and go."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from core.names import QUEUE_NAME_ANNOTATION
from core.settings import Settings
from kube import class_grace
from kube.metrics import Metrics
from kube.resources import DEVICE_CLASSES, NAMESPACES, NODES, QUEUES
from tests.fakes.apiserver import FakeApiServer, background
from tests.fakes.faults import answer_status, silence
from tests.unit.core.admission.samples import H200, a_node, a_queue
from webhook.views import LiveViews


@pytest.fixture
async def views(server: FakeApiServer) -> AsyncIterator[LiveViews]:
    """Views that run; objects put before the first await are in their first list."""
    metrics = Metrics(CollectorRegistry())
    async with server.client(metrics) as client, AsyncExitStack() as stack:
        live = LiveViews(client, Settings(), informer_metrics=metrics)
        for run in live.runnables:
            task = await stack.enter_async_context(background(_run(run)))
            assert not task.done()
        yield live


async def _run(runnable: Any) -> None:
    await runnable()


async def test_a_part_that_is_not_listed_is_none(server: FakeApiServer, views: LiveViews) -> None:
    """The other part serves all the same, and neither is waited for."""
    server.fail("list", silence(), path="/nodes", times=100)
    server.put(QUEUES, a_queue("{}"))
    assert views.current().inventory is None
    assert views.current().queues is None
    await server.wait_for(lambda: bool(views.current().queues))
    assert views.current().inventory is None


async def test_nodes_come_change_and_go(server: FakeApiServer, views: LiveViews) -> None:
    server.put(NODES, a_node())
    await views.wait_listed()
    inventory = views.current().inventory
    assert inventory is not None
    assert inventory.resources_of(H200) == {"nvidia.com/gpu"}
    ascend = server.put(NODES, a_node("Ascend910B", "huawei.com/npu"))
    await server.wait_for(lambda: bool(inventory.resources_of("Ascend910B")))
    relabelled = a_node("NVIDIA-H800")
    relabelled["metadata"]["name"] = a_node()["metadata"]["name"]
    server.put(NODES, relabelled)
    await server.wait_for(lambda: bool(inventory.resources_of("NVIDIA-H800")))
    assert not inventory.resources_of(H200)
    server.remove(NODES, ascend["metadata"]["name"])
    await server.wait_for(lambda: not inventory.resources_of("Ascend910B"))


async def test_queues_come_change_and_go(server: FakeApiServer, views: LiveViews) -> None:
    server.put(QUEUES, a_queue('{"A": 1}'))
    await views.wait_listed()
    queues = views.current().queues
    assert queues is not None
    assert queues["team-a"].card_quota == '{"A": 1}'
    server.put(QUEUES, a_queue('{"A": 2}'))
    await server.wait_for(lambda: queues["team-a"].card_quota == '{"A": 2}')
    server.remove(QUEUES, "team-a")
    await server.wait_for(lambda: "team-a" not in queues)


async def test_namespaces_come_are_labelled_and_go(server: FakeApiServer, views: LiveViews) -> None:
    server.put(NAMESPACES, {"metadata": {"name": "ml"}})
    await views.wait_listed()
    found = views.current().namespaces
    assert found is not None
    assert found["ml"].labels == {"kubernetes.io/metadata.name": "ml"}
    labelled = {"name": "ml", "labels": {"env": "dev"}, "annotations": {QUEUE_NAME_ANNOTATION: "team-a"}}
    server.put(NAMESPACES, {"metadata": labelled})
    await server.wait_for(lambda: found["ml"].labels.get("env") == "dev")
    assert found["ml"].queue == "team-a"
    server.remove(NAMESPACES, "ml")
    await server.wait_for(lambda: "ml" not in found)


async def test_without_namespaces_nothing_is_known_of_them(server: FakeApiServer, views: LiveViews) -> None:
    server.fail("list", silence(), path="/namespaces", times=100)
    server.put(QUEUES, a_queue("{}"))
    await server.wait_for(lambda: bool(views.current().queues))
    assert views.current().namespaces is None


async def test_a_cluster_without_queues_has_none(server: FakeApiServer, views: LiveViews) -> None:
    """Volcano's CRDs need not be installed."""
    missing = answer_status(404, "NotFound", "the server could not find the requested resource")
    server.fail("list", missing, path="/queues", times=100)
    await views.wait_listed()
    assert views.current().queues == {}


@pytest.mark.parametrize(
    "garbage",
    [
        {"metadata": {"name": "n", "labels": 3}, "status": []},
        {"metadata": {"name": "n", "labels": {"x.product": 1}}, "status": {"allocatable": {"x": []}}},
    ],
)
async def test_garbage_in_a_node_stops_nothing(
    server: FakeApiServer, views: LiveViews, garbage: dict[str, Any]
) -> None:
    server.put(NODES, garbage)
    server.put(NODES, a_node())
    await views.wait_listed()
    inventory = views.current().inventory
    assert inventory is not None
    assert inventory.cards() == (H200,)


DEVICES = "/apis/resource.k8s.io/"


async def test_device_classes_come_and_go(server: FakeApiServer, views: LiveViews) -> None:
    server.put(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
    await views.wait_listed()
    found = views.current().device_classes
    assert found is not None
    assert "gpu" in found
    server.remove(DEVICE_CLASSES, "gpu")
    await server.wait_for(lambda: "gpu" not in found)


async def test_what_a_class_has_served_is_gated_until_its_grace_is_over(
    server: FakeApiServer, views: LiveViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller counts it for so long as well: see kube.class_grace."""
    monkeypatch.setattr(class_grace, "GRACE_S", 0.5)
    server.put(
        DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    )
    await views.wait_listed()
    found = views.current().serving
    assert found is not None
    server.remove(DEVICE_CLASSES, "gpu")
    await server.wait_for(lambda: "gpu" not in found)
    assert found.serving("example.com/gpu") == "gpu"
    await server.wait_for(lambda: found.serving("example.com/gpu") is None)


async def test_without_device_classes_nothing_is_said_about_them(
    server: FakeApiServer, views: LiveViews
) -> None:
    """An API server that does not serve them in any version is no cluster without any."""
    server.fail("list", answer_status(404, "NotFound"), path=DEVICES, times=100)
    await views.wait_listed()
    assert views.current().device_classes is None
