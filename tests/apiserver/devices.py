"""Claims on devices for the tests on a whole installation, and a stand-in for the driver that allocates them."""

from collections.abc import Mapping
from typing import Any

from core import names
from hack.controlplane import wait_for
from tests.apiserver.cluster import Cluster, Object, gates, unique
from tests.apiserver.manifests import pod
from tests.builders import a_queue
from tests.builders.claims import a_claim, a_template

_DEVICES = "/apis/resource.k8s.io/v1"


def claiming(name: str, queue: str, *, claim: str = "", template: str = "", **spec: Any) -> Object:
    """A pod with a claim by name, or one to be made from a template; its container asks for nothing else."""
    reference = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    annotations = {names.QUEUE_NAME_ANNOTATION: queue}
    return pod(name, annotations=annotations, resourceClaims=[{"name": "dev", **reference}], **spec)


class Devices:
    """Queues, claims and templates about a DeviceClass that no other test knows."""

    def __init__(self, cluster: Cluster, *, extended: str = "", driver: str = "") -> None:
        """The class serves the extended resource, and takes the devices of the driver alone, as far as they are given."""
        self.cluster = cluster
        self.device_class = f"{unique('gpu')}.example.com"
        self.key = f"deviceclass/{self.device_class}"
        metadata = {"name": self.device_class}
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        spec: dict[str, Any] = {"extendedResourceName": extended} if extended else {}
        if driver:
            spec["selectors"] = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
        cluster.make({**kind, "metadata": metadata, "spec": spec})

    def quota(self, count: int, **capacity: str | int) -> dict[str, Any]:
        """A device quota of the class."""
        return {"capability": {self.device_class: {"count": count, "capacity": capacity}}}

    def queue(self, count: int | None, *, parent: str = "") -> str:
        """Create a queue with so many devices, or without a device quota, and return its name."""
        built = a_queue(unique("q")).child_of(parent) if parent else a_queue(unique("q"))
        built = built if count is None else built.devices(self.quota(count))
        stored = built.build()
        self.cluster.create_queue(stored)
        name: str = stored["metadata"]["name"]
        return name

    def set_quota(self, queue: str, count: int) -> None:
        """Change the device quota of a queue."""
        self.cluster.api.patch(queue_path(queue), {"spec": {"dra": self.quota(count)}}).expect()

    def claim(self, name: str, count: int = 1) -> None:
        """Create a claim."""
        self.cluster.create(a_claim(name).exactly("r", self.device_class, count=count).build())

    def template(self, name: str, count: int = 1) -> None:
        """Create a template of claims."""
        self.cluster.create(a_template(name).exactly("r", self.device_class, count=count).build())

    def allocate(self, claim: str, *requests: str) -> None:
        """Allocate a device for each of these requests, as a driver's scheduler plugin would."""
        results = [
            {"request": request, "driver": "test.example.com", "pool": "p", "device": f"d{number}"}
            for number, request in enumerate(requests)
        ]
        # Without a time the scheduler would set one, which is refused: an allocation never changes.
        allocation = {"allocationTimestamp": "2024-01-01T00:00:00Z", "devices": {"results": results}}
        body = {"status": {"allocation": allocation}}
        self.cluster.api.patch(f"{self.claim_path(claim)}/status", body).expect()

    def claim_path(self, claim: str) -> str:
        """The path of a claim."""
        return f"{_DEVICES}/namespaces/{self.cluster.namespace}/resourceclaims/{claim}"

    def generated(self, name: str) -> str:
        """Return the name of the claim that was made for a pod, once there is one."""

        def made() -> str:
            statuses = self.cluster.pod(name).get("status", {}).get("resourceClaimStatuses") or []
            return next((each["resourceClaimName"] for each in statuses), "")

        return wait_for(f"a claim is made for {name}", made)

    def wait_lifted(self, *pods: str) -> None:
        """Return once exactly these pods of the namespace have no gate of ours."""

        def lifted() -> bool:
            return {name for name, one in self.cluster.pods().items() if names.GATE not in gates(one)} == set(
                pods
            )

        wait_for(f"{sorted(pods)} are lifted and nobody else", lifted)

    def wait_shown(self, queue: str, expected: Mapping[str, str]) -> None:
        """Return once the status of a queue shows exactly this."""
        path = queue_path(queue)
        wait_for(f"{queue} shows {expected}", lambda: self.cluster.allocated(path) == dict(expected))


def queue_path(name: str) -> str:
    return f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}"
