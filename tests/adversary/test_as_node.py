"""Forced deletions with the account of a node: kubelets end deletions in this way, each those of the pods on its own node."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, Final

import pytest

from core import names
from hack.controlplane import Answer, ApiClient, ControlPlane, wait_for
from hack.controlplane.components import DELETE_AFTER
from hack.controlplane.nodes import node
from hack.install import Installation
from tests.adversary.scene import Scene
from tests.adversary.ways import OTHER
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.granted import wait_granted

pytestmark = pytest.mark.apiserver

RBAC: Final = "rbac.authorization.k8s.io"
NODES: Final = "system:nodes"
YEAR_S: Final = 31_536_000

Kubelet = Callable[[str], ApiClient]


@pytest.fixture
def kubelet(control_plane: ControlPlane) -> Iterator[Kubelet]:
    """Clients with the account of a node, which holds the role that Kubernetes has for it."""
    role: Object = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": unique("kubelets")},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:node"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": NODES}],
    }
    path = control_plane.api.path_of(control_plane.apply(role)[0])
    with ExitStack() as clients:
        anybody = clients.enter_context(closing(as_node(control_plane, "anybody")))
        wait_granted(anybody, "/api/v1/nodes?limit=1")
        yield lambda name: clients.enter_context(closing(as_node(control_plane, name)))
    control_plane.api.delete(path).expect()


def as_node(plane: ControlPlane, name: str) -> ApiClient:
    """Somebody who shows the certificate of a kubelet."""
    return plane.client(plane.user_kubeconfig(f"{names.NODE_ACCOUNTS}{name}", [NODES]))


def ended(api: ApiClient, path: str, uid: str) -> Answer:
    """What a kubelet asks for when the containers of a deleted pod have ended."""
    return api.request("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})


def evicted(api: ApiClient, path: str) -> Answer:
    """By force, as a deletion would be."""
    eviction: Object = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": path.rpartition("/")[2]},
    }
    return api.request("POST", f"{path}/eviction", {**eviction, "deleteOptions": {"gracePeriodSeconds": 0}})


def slow(stage: Scene, name: str, queue: str) -> Object:
    """A pod that may take a year to end, and whose kubelet is played by the test."""
    made = stage.pod("card", name, queue, terminationGracePeriodSeconds=YEAR_S)
    made["metadata"]["annotations"][DELETE_AFTER] = "1h"
    return made


def test_a_kubelet_ends_what_was_deleted_on_its_node_whatever_grace_is_left(
    stage: Scene, kubelet: Kubelet
) -> None:
    """It would wait for a year otherwise, for a pod that is on no machine any more, and so would the next one."""
    stage.equip("card")
    stage.tenant.create(slow(stage, "a", "own"))
    stage.admin.wait_running("a")
    path, pod = stage.admin.path("a"), stage.admin.pod("a")
    stage.tenant.api.delete(path).expect()
    stage.assert_second_waits("card")
    ended(kubelet(pod["spec"]["nodeName"]), path, pod["metadata"]["uid"]).expect()
    stage.admin.wait_running("b")


def test_the_account_of_a_node_ends_nothing_on_another_one(stage: Scene, kubelet: Kubelet) -> None:
    """Whoever has taken it from one machine does not free the quota of what runs on all others."""
    stage.equip("card")
    stage.tenant.create(slow(stage, "a", "own"))
    stage.admin.wait_running("a")
    path, uid = stage.admin.path("a"), stage.admin.pod("a")["metadata"]["uid"]
    another = unique("node")
    stage.admin.add_nodes(node(another))
    for name in (another, "no-such-node", ""):
        assert_refused(ended(kubelet(name), path, uid), f"may run on for {YEAR_S} s")
    assert_refused(evicted(kubelet(another), path), "without grace")
    assert_refused(evicted(kubelet(stage.admin.pod("a")["spec"]["nodeName"]), path), "without grace")
    assert_refused(ended(stage.tenant.api, path, uid), f"may run on for {YEAR_S} s")
    stage.assert_second_waits("card")
    # What no node is asked about: a pod that ends within the grace that is free anyway.
    stage.tenant.create(stage.pod("card", "short", OTHER))
    stage.admin.wait_running("a", "short")
    ended(kubelet(another), stage.admin.path("short"), stage.admin.pod("short")["metadata"]["uid"]).expect()
    ended(stage.admin.api, path, uid).expect()
    stage.admin.wait_running("b")


@pytest.fixture(scope="module")
def node_authorizer() -> Iterator[ControlPlane]:
    """An API server that knows nodes as most clusters do, with the policies and none of our processes.

    Without the admission plugin NodeRestriction, which would see to some of this, too.
    """
    arguments = ("--authorization-mode=Node",)
    with (
        ControlPlane(api_server_arguments=arguments, scheduler=False, kwok=False) as plane,
        Installation(plane, webhook=False, controller=0),
    ):
        yield plane


def test_nor_does_the_node_authorizer_change_that(node_authorizer: ControlPlane) -> None:
    """It lets every node delete and evict every pod."""
    plane = node_authorizer
    for name in ("own", "another"):
        plane.add_node(name)
    plane.create_namespace("tenants")
    cluster = Cluster(plane, "tenants")
    spec: dict[str, Any] = {
        "nodeName": "own",
        "terminationGracePeriodSeconds": YEAR_S,
        "containers": [{"name": "main", "image": "none"}],
    }
    made: Object = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    labels = {names.MANAGED_LABEL: "true"}
    (pod,) = cluster.create({**made, "metadata": {"name": "a", "labels": labels}})
    path, uid = cluster.path("a"), pod["metadata"]["uid"]
    cluster.api.patch(f"{path}/status", {"status": {"phase": "Running"}}).expect()
    with closing(as_node(plane, "own")) as own, closing(as_node(plane, "another")) as another:
        assert_refused(ended(another, path, uid), f"may run on for {YEAR_S} s")
        for one in (own, another):
            assert_refused(evicted(one, path), "without grace")
        cluster.api.delete(path).expect()
        assert cluster.pod("a")["metadata"]["deletionGracePeriodSeconds"] == YEAR_S
        ended(own, path, uid).expect()
    wait_for("it is gone", lambda: cluster.pods() == {})


def assert_refused(answer: Answer, *words: str) -> None:
    assert answer.status == 403, answer.body
    for word in words:
        assert word in answer.body["message"], answer.body["message"]
