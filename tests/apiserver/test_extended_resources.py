"""Extended resources that a DeviceClass serves: the real scheduler makes the claims, and the queue's device quota holds."""

import pytest

from core import names, reasons
from hack.controlplane import wait_for
from hack.controlplane.nodes import node
from tests.apiserver.cluster import Cluster, Object, gates, unique
from tests.apiserver.devices import Devices
from tests.apiserver.manifests import pod
from tests.builders import a_queue

SHORT = reasons.INSUFFICIENT_DEVICE_QUOTA


class Driver:
    """A driver that offers devices on nodes, and an extended resource that stands for them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name, self.resource = f"{unique('driver')}.example.com", f"example.com/{unique('gpu')}"

    def serve(self) -> Devices:
        """Create the DeviceClass that serves the resource, and return once pods are gated for it."""
        cluster, devices = self.cluster, Devices(self.cluster, extended=self.resource, driver=self.name)

        def gated() -> bool:
            probe = cluster.try_create(self.asking("probe", "q"), dryRun="All").expect(201)
            return names.GATE in gates(probe)

        wait_for("the webhook knows the class", gated)
        return devices

    def offer(self, count: int) -> None:
        """Add a node with so many devices."""
        name = unique("node")
        self.cluster.add_nodes(node(name))
        self.cluster.make(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {
                    "driver": self.name,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"d{number}"} for number in range(count)],
                },
            }
        )

    def asking(self, name: str, queue: str, resource: str = "") -> Object:
        """A pod that asks for a device without a claim of its own."""
        annotations = {names.QUEUE_NAME_ANNOTATION: queue}
        return pod(name, annotations=annotations, limits={resource or self.resource: 1})


@pytest.fixture
def driver(cluster: Cluster) -> Driver:
    return Driver(cluster)


@pytest.mark.parametrize("implicit", [False, True], ids=["by its name", "by the name of the class"])
def test_they_wait_for_the_device_quota_and_are_shown_as_what_they_got(
    cluster: Cluster, driver: Driver, *, implicit: bool
) -> None:
    driver.offer(4)
    devices = driver.serve()
    queue = devices.queue(2)
    resource = f"{names.DEVICE_CLASS_RESOURCE_PREFIX}{devices.device_class}" if implicit else driver.resource
    cluster.create(*(driver.asking(f"p{number}", queue, resource) for number in range(3)))
    cluster.wait_running("p0", "p1")
    assert "requested 1, used 2, limit 2" in cluster.wait_said("p2", SHORT)
    claim = cluster.pod("p0")["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    assert claim.startswith("p0-")
    devices.wait_shown(queue, {devices.key: "2"})
    cluster.finish("p0")
    cluster.wait_running("p1", "p2")
    devices.wait_shown(queue, {devices.key: "2"})


def test_what_a_device_plugin_serves_costs_no_device(cluster: Cluster, driver: Driver) -> None:
    """Nobody knows before the bind; with it, the quota of the class is free again."""
    devices = driver.serve()
    cluster.add_nodes(node(unique("node"), allocatable={driver.resource: "4"}))
    queue = devices.queue(1)
    cluster.create(*(driver.asking(f"p{number}", queue) for number in range(3)))
    cluster.wait_running("p0", "p1", "p2")
    devices.wait_shown(queue, {})


def test_a_pod_that_came_before_the_class_is_asked_at_its_bind(cluster: Cluster, driver: Driver) -> None:
    queue = unique("q")
    cluster.create(driver.asking("early", queue))
    assert gates(cluster.pod("early")) == []
    devices = driver.serve()
    cluster.create_queue(a_queue(queue).devices(devices.quota(0)).build())
    driver.offer(1)

    def refused() -> str:
        conditions = cluster.pod("early")["status"].get("conditions", [])
        return next((one["message"] for one in conditions if "limit 0" in one.get("message", "")), "")

    said = wait_for("the bind is refused", refused)
    assert "quota exceeded" in said
    assert not cluster.pod("early")["spec"].get("nodeName")
