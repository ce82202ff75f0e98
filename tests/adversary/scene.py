"""The tenant on a real control plane: a namespace, a ServiceAccount with `edit` and what Volcano adds to it, and queues."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import Any, Final

from core import names
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, mgpu_node, node
from tests.adversary import ways
from tests.adversary.ways import CLASS, EXTENDED, MANY, OTHER, OWN, SERVED, WAYS
from tests.apiserver.cluster import Cluster, Object, charged, gates, unique
from tests.apiserver.granted import wait_granted
from tests.builders.claims import a_claim, a_template
from tests.builders.raw import Builder

ACCOUNT: Final = "tenant"
NOBODY: Final = "nobody"
"""A scheduler that does not exist, and that we do not gate for."""
_RBAC: Final = "rbac.authorization.k8s.io"
_WRITE: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_OF_VOLCANO: Final = (
    ("scheduling.volcano.sh", "v1beta1", "podgroups"),
    ("batch.volcano.sh", "v1alpha1", "jobs"),
)
_DRIVER: Final = "driver.example.com"


@contextmanager
def tenancy(plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    """The namespace in the hands of a ServiceAccount that has the role `edit` there, with its own token.

    Volcano adds to that role, by aggregation, that its PodGroups and Jobs may be written.
    """
    kubeconfig = plane.service_account_kubeconfig(namespace, ACCOUNT, create=True)
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    of_volcano = [
        {"apiGroups": [group], "resources": [resource], "verbs": [*_WRITE]}
        for group, _, resource in _OF_VOLCANO
    ]
    metadata = {"name": "volcano-edit", "namespace": namespace}
    roles: list[Object] = [{"kind": "ClusterRole", "name": "edit"}, {"kind": "Role", "name": "volcano-edit"}]
    bindings: list[Object] = [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role["name"], "namespace": namespace},
            "roleRef": {"apiGroup": _RBAC, **role},
            "subjects": [subject],
        }
        for role in roles
    ]
    role: Object = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": of_volcano}
    plane.apply([role, *bindings])
    with closing(plane.client(kubeconfig)) as client:
        here = f"namespaces/{namespace}"
        volcanos = [f"/apis/{group}/{version}/{here}/{resource}" for group, version, resource in _OF_VOLCANO]
        wait_granted(client, f"/api/v1/{here}/pods", *volcanos)
        mine = Cluster(plane, namespace)
        mine.api = client
        yield mine


class Scene:
    """Nodes for every way of using a card, the tenant's queue with quota for one pod, an open one with quota for many."""

    def __init__(self, admin: Cluster, tenant: Cluster) -> None:
        self.admin, self.tenant = admin, tenant
        self.queues = {OWN: unique(OWN), OTHER: unique(OTHER)}
        self.paths = {
            short: admin.create_queue(_stored(ways.limited(name, 1 if short == OWN else MANY)))
            for short, name in self.queues.items()
        }

    def equip(self, way: str) -> None:
        """What a way needs: a node, and for devices their classes and a driver that offers them."""
        worker, key = unique(way), WAYS[way].key
        if key == "A":
            self.admin.add_nodes(gpu_node(worker, product="A", cards=MANY, memory_mib=81920))
        elif key == ways.MPS:
            labels = {"nvidia.com/gpu.product": "M", "nvidia.com/gpu.memory": "81920"}
            labels[names.MPS_REPLICAS_LABEL] = "8"
            self.admin.add_nodes(node(worker, labels=labels, allocatable={names.MPS_RESOURCE: MANY}))
        elif key == ways.MIG:
            labels = {"nvidia.com/gpu.product": "G", "nvidia.com/gpu.memory": "81920"}
            self.admin.add_nodes(node(worker, labels=labels, allocatable={"nvidia.com/mig-1g.10gb": MANY}))
        elif key == names.MGPU_CORE:
            self.admin.add_nodes(mgpu_node(worker, cards=MANY, memory_mib=16384))
        else:
            self._equip_with_devices(worker)

    def _equip_with_devices(self, worker: str) -> None:
        self.admin.add_nodes(node(worker))
        selectors = [{"cel": {"expression": f"device.driver == '{_DRIVER}'"}}]
        api = "resource.k8s.io/v1"
        for name, more in ((CLASS, {}), (SERVED, {"extendedResourceName": EXTENDED})):
            spec = {"selectors": selectors, **more}
            self.admin.make(
                {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
            )
        offer = {
            "driver": _DRIVER,
            "nodeName": worker,
            "pool": {"name": worker, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(MANY)],
        }
        self.admin.make(
            {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": worker}, "spec": offer}
        )
        self.tenant.create(_stored(a_template("each").exactly("r", CLASS)))

    def pod(self, way: str, name: str, queue: str = OWN, **spec: Any) -> Object:
        """A pod of a way for one of the queues, or for none; its claim is made where that is what it needs."""
        built = WAYS[way].named(name, self.queues.get(queue, queue))
        if way == "claim":
            self.tenant.try_create(_stored(a_claim(f"of-{name}").exactly("r", CLASS)))
            built = built.claim("dev", name=f"of-{name}")
        made = _stored(built)
        return {**made, "spec": {**made["spec"], **spec}}

    def first(self, way: str) -> None:
        """The one pod that there is quota for runs."""
        self.equip(way)
        self.tenant.create(self.pod(way, "a"))
        self.admin.wait_running("a")

    def assert_second_waits(self, way: str, *running: str) -> None:
        """Another one asks for the same, as anybody may; it is told why it waits, and only these pods run."""
        self.tenant.create(self.pod(way, "b"))
        self.assert_waits(way, *running)

    def assert_waits(self, way: str, *running: str) -> None:
        """So does `b`, that was made already; and the queue is charged with one pod."""
        said = self.admin.wait_said("b", WAYS[way].short)
        assert self.queues[OWN] in said
        assert self.admin.running() == {*(running or ("a",))}
        assert names.GATE in gates(self.admin.pod("b"))
        assert self.charged() == [self.queues[OWN]]
        self.wait_shown(way)

    def charged(self) -> list[str]:
        """The queues that the pods of the namespace are on record for, each once for a pod."""
        return sorted(filter(None, map(charged, self.admin.pods().values())))

    def wait_shown(self, way: str) -> None:
        """Return once the status of the queues says the same; shares of mGPU cards are not shown there."""
        key = WAYS[way].key
        shown: dict[str, dict[str, str]] = {OWN: {key: "1"}, OTHER: {}}
        if key != names.MGPU_CORE:
            wait_for(f"the queues show {shown}", lambda: self._shown() == shown)

    def _shown(self) -> dict[str, dict[str, str]]:
        return {short: self.admin.allocated(path) for short, path in self.paths.items()}

    def reserved_for(self, claim: str) -> set[str]:
        """The pods that a claim is reserved for."""
        api = self.admin.api
        path = api.path("resource.k8s.io/v1", "ResourceClaim", self.admin.namespace, claim)
        found = api.get(path).expect().get("status", {}).get("reservedFor", [])
        return {each["name"] for each in found}

    def take_away_claim(self, name: str) -> None:
        """The tenant deletes a claim in use, and patches away what keeps it."""
        path = self.tenant.api.path("resource.k8s.io/v1", "ResourceClaim", self.tenant.namespace, name)
        self.tenant.api.delete(path).expect()
        self.tenant.api.patch(path, {"metadata": {"finalizers": None}}).expect(200, 404)
        wait_for("the claim is gone", lambda: self.tenant.api.get(path).status == HTTPStatus.NOT_FOUND)

    def annotation(self, name: str, key: str) -> str:
        """What is annotated on a pod; empty for nothing."""
        return str(self.admin.pod(name)["metadata"].get("annotations", {}).get(key, ""))

    def patch(self, name: str, patch: Any, kind: Any = "merge") -> Answer:
        """What the tenant writes on a pod."""
        return self.tenant.api.patch(self.tenant.path(name), patch, kind)

    def annotate(self, name: str, **entries: str | None) -> Answer:
        """The same of annotations."""
        return self.patch(name, {"metadata": {"annotations": entries}})


def _stored(built: Builder) -> Object:
    """What a builder has built, without what the API server gives."""
    raw = built.build()
    kept = {key: raw["metadata"][key] for key in ("name", "annotations", "labels") if key in raw["metadata"]}
    return {**{key: value for key, value in raw.items() if key != "status"}, "metadata": kept}


def assert_refused(answer: Answer, *words: str, status: int = 403) -> None:
    """An answer of this status whose message has all these words."""
    assert answer.status == status, answer.body
    for word in words:
        assert word in answer.body["message"], answer.body["message"]
