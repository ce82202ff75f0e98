"""The chart's admission policies on a real API server: what a tenant, an admin and the controller may do to pods."""

import secrets
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core import names
from hack.controlplane import ApiClient, ControlPlane, wait_for
from hack.controlplane.client import PatchKind
from hack.install import Installation
from hack.installation.inventory import Inventory
from hack.installation.rendering import of_kind
from tests.apiserver.granted import wait_granted
from tests.apiserver.guarded import Pods, annotate, assert_denied

POLICIES = (
    "cardquota-create",
    "cardquota-deletion",
    "cardquota-eviction",
    "cardquota-gate",
    "cardquota-records",
)
NODE_AGENT = "node-agent"
FOREIGN_GATE = "example.com/foreign"
INDEX = f"{names.GPU_INDEX_PREFIX}c"
TYPE_CHECK_TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart without its processes: the policies are in force, no webhook is called."""
    values = {"mgpu": {"nodeAgents": [NODE_AGENT]}}
    with Installation(control_plane, values=values, webhook=False, controller=0) as installed:
        yield installed


@pytest.fixture(scope="module")
def controller(control_plane: ControlPlane, installation: Installation) -> Iterator[ApiClient]:
    account = control_plane.service_account_kubeconfig(installation.namespace, "cardquota-controller")
    with closing(control_plane.client(account)) as client:
        yield client


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlane) -> ApiClient:
    return control_plane.api


@pytest.fixture(scope="module")
def node_agent(
    control_plane: ControlPlane, admin: ApiClient, installation: Installation
) -> Iterator[ApiClient]:
    """A user who may do everything and is named in `mgpu.nodeAgents`."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"node-agent-{secrets.token_hex(4)}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": NODE_AGENT}],
    }
    control_plane.apply(binding)
    with closing(control_plane.client(control_plane.user_kubeconfig(NODE_AGENT))) as client:
        wait_granted(client, "/api/v1/nodes")
        yield client
    admin.delete(admin.path_of(binding)).expect()


@pytest.fixture
def tenant_client(control_plane: ControlPlane, tenant: Path) -> Iterator[ApiClient]:
    with closing(control_plane.client(tenant)) as client:
        yield client


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str, controller: ApiClient) -> Pods:
    return Pods(control_plane, namespace, controller)


# -- the policies themselves ---------------------------------------------------------------------------------------


def test_the_api_servers_type_check_finds_nothing(
    control_plane: ControlPlane, installation: Installation
) -> None:
    kind = of_kind(installation.objects, "ValidatingAdmissionPolicy")
    assert tuple(sorted(kind)) == POLICIES
    for policy in kind.values():
        path = control_plane.api.path_of(policy)

        def checked(path: str = path) -> dict[str, Any] | None:
            status: dict[str, Any] = control_plane.api.get(path).expect().get("status", {})
            return status if "typeChecking" in status else None

        status = wait_for(f"{path} is type-checked", checked, TYPE_CHECK_TIMEOUT_S)
        assert status is not None
        assert status["typeChecking"] == {}


# -- the gate ------------------------------------------------------------------------------------------------------


# Every kind of patch that leaves a pod without our gate.
REMOVALS: dict[PatchKind, Any] = {
    "merge": {"spec": {"schedulingGates": [{"name": FOREIGN_GATE}]}},
    "json": [{"op": "remove", "path": "/spec/schedulingGates/0"}],
    "strategic": {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.GATE}]}},
}


@pytest.mark.parametrize("who", ["admin", "tenant_client", "node_agent"])
@pytest.mark.parametrize("kind", REMOVALS)
def test_nobody_patches_the_gate_away(
    request: pytest.FixtureRequest, pods: Pods, who: str, kind: PatchKind
) -> None:
    client: ApiClient = request.getfixturevalue(who)
    path = pods.make(gates=(names.GATE, FOREIGN_GATE))
    assert_denied(client.patch(path, REMOVALS[kind], kind), names.GATE, "quota controller")


@pytest.mark.parametrize("who", ["admin", "tenant_client"])
def test_nobody_replaces_a_pod_by_one_without_gate(
    request: pytest.FixtureRequest, pods: Pods, who: str
) -> None:
    client: ApiClient = request.getfixturevalue(who)
    pod = client.get(pods.make()).expect()
    del pod["spec"]["schedulingGates"]
    assert_denied(client.replace(pod), names.GATE)


def test_the_denial_names_who_asked(
    control_plane: ControlPlane, tenant_client: ApiClient, pods: Pods
) -> None:
    path = pods.make()
    answer = tenant_client.patch(path, [{"op": "remove", "path": "/spec/schedulingGates/0"}], "json")
    assert_denied(answer, f"tenant-of-{path.split('/')[4]}")


def test_the_controller_lifts_narrows_and_records_in_one_patch(controller: ApiClient, pods: Pods) -> None:
    path = pods.make({names.CARD_NAME_ANNOTATION: "NVIDIA-H200"}, gates=(FOREIGN_GATE, names.GATE))
    term = {
        "matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H200"]}]
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    patch = [
        {"op": "test", "path": "/spec/schedulingGates/1/name", "value": names.GATE},
        {"op": "remove", "path": "/spec/schedulingGates/1"},
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": required}},
        {"op": "add", "path": "/metadata/annotations/cardquota.io~1assigned", "value": '{"NVIDIA-H200":1}'},
    ]
    stored = controller.patch(path, patch, "json").expect(200)
    assert stored["spec"]["schedulingGates"] == [{"name": FOREIGN_GATE}]
    assert stored["metadata"]["annotations"][names.ASSIGNED_ANNOTATION] == '{"NVIDIA-H200":1}'


def test_a_foreign_gate_can_still_be_removed_by_its_owner(admin: ApiClient, pods: Pods) -> None:
    path = pods.make(gates=(names.GATE, FOREIGN_GATE))
    admin.patch(path, [{"op": "remove", "path": "/spec/schedulingGates/1"}], "json").expect(200)


def test_a_gated_pod_can_be_deleted(tenant_client: ApiClient, pods: Pods) -> None:
    tenant_client.delete(pods.make()).expect(200, 202)


# -- records -------------------------------------------------------------------------------------------------------

RECORDS = {
    names.ASSIGNED_ANNOTATION: '{"NVIDIA-H200":1}',
    INDEX: "0",
    names.ASSUMED_ANNOTATION: "true",
}
NEAR_MISSES = {f"{names.OWN_PREFIX}anything": "x", f"{names.GPU_INDEX_GUARD_PREFIX}other": "0"}


@pytest.mark.parametrize("key", [*RECORDS, *NEAR_MISSES])
@pytest.mark.parametrize("gated", [True, False])
def test_nobody_sets_a_record(
    admin: ApiClient, tenant_client: ApiClient, pods: Pods, key: str, gated: bool
) -> None:
    path = pods.make(gates=(names.GATE,) if gated else ())
    assert_denied(annotate(tenant_client, path, **{key: "9"}), key)
    assert_denied(annotate(admin, path, **{key: "9"}), key)


@pytest.mark.parametrize("key", RECORDS)
@pytest.mark.parametrize("value", ["9", None], ids=["changes", "removes"])
def test_nobody_edits_a_record(
    admin: ApiClient, tenant_client: ApiClient, pods: Pods, key: str, value: str | None
) -> None:
    path = pods.make(gates=(), records=RECORDS)
    assert_denied(annotate(tenant_client, path, **{key: value}), key)
    assert_denied(annotate(admin, path, **{key: value}), key)


@pytest.mark.parametrize("gated", [True, False])
def test_the_gang_of_a_pod_is_written_with_it_and_never_changed(
    admin: ApiClient, tenant_client: ApiClient, pods: Pods, gated: bool
) -> None:
    """Also beside records, which nobody takes it for."""
    gates, gang = (names.GATE,) if gated else (), dict.fromkeys(names.GANG_KEYS, "4")
    member, other = pods.make(gang, gates=gates), pods.make(gates=gates)
    for key in names.GANG_KEYS:
        for client in (tenant_client, admin):
            assert_denied(annotate(client, member, **{key: "5"}), key, "fixed on a stored pod")
            assert_denied(annotate(client, member, **{key: None}), key)
            assert_denied(annotate(client, other, **{key: "4"}), key)


def test_a_denial_names_every_record_that_was_touched(admin: ApiClient, pods: Pods) -> None:
    path = pods.make(gates=(), records=RECORDS)
    edits = {names.ASSUMED_ANNOTATION: None, INDEX: "7"}
    assert_denied(annotate(admin, path, **edits), INDEX, names.ASSUMED_ANNOTATION)


def test_a_status_update_is_no_way_round(admin: ApiClient, pods: Pods) -> None:
    path = pods.make(gates=(), records=RECORDS)
    for key in RECORDS:
        assert_denied(annotate(admin, f"{path}/status", **{key: "9"}), key)
    relabel = {"metadata": {"labels": {names.MANAGED_LABEL: None}}}
    assert_denied(admin.patch(f"{path}/status", relabel), names.MANAGED_LABEL)


@pytest.mark.parametrize("subresource", ["ephemeralcontainers", "resize"])
def test_other_subresources_carry_no_annotations(admin: ApiClient, pods: Pods, subresource: str) -> None:
    path = pods.make(gates=(), records=RECORDS)
    answer = annotate(admin, f"{path}/{subresource}", **{names.ASSUMED_ANNOTATION: "false"})
    assert answer.status in (200, 403), answer.body
    stored = admin.get(path).expect()["metadata"]["annotations"]
    assert stored[names.ASSUMED_ANNOTATION] == RECORDS[names.ASSUMED_ANNOTATION]


@pytest.mark.parametrize("value", ["false", None], ids=["changes", "removes"])
def test_nobody_edits_our_label(tenant_client: ApiClient, pods: Pods, value: str | None) -> None:
    path = pods.make()
    patch = {"metadata": {"labels": {names.MANAGED_LABEL: value}}}
    assert_denied(tenant_client.patch(path, patch), names.MANAGED_LABEL)


def test_nobody_sets_our_label_on_a_pod_without(tenant_client: ApiClient, pods: Pods) -> None:
    path = pods.make(managed=False, gates=())
    patch = {"metadata": {"labels": {names.MANAGED_LABEL: "true"}}}
    assert_denied(tenant_client.patch(path, patch), names.MANAGED_LABEL)


def test_the_controller_writes_and_mends_records(controller: ApiClient, pods: Pods) -> None:
    path = pods.make(gates=(), records=RECORDS)
    changed = annotate(controller, path, **{INDEX: "3", names.ASSUMED_ANNOTATION: None}).expect(200)
    assert changed["metadata"]["annotations"][INDEX] == "3"
    assert names.ASSUMED_ANNOTATION not in changed["metadata"]["annotations"]


def test_a_node_agent_writes_results_and_nothing_else(node_agent: ApiClient, pods: Pods) -> None:
    path = pods.make(gates=(), records=RECORDS)
    annotate(node_agent, path, **{INDEX: "3", names.ASSUMED_ANNOTATION: "false"}).expect(200)
    assert_denied(annotate(node_agent, path, **{names.ASSIGNED_ANNOTATION: "{}"}), names.ASSIGNED_ANNOTATION)
    both = annotate(node_agent, path, **{INDEX: "4", names.ASSIGNED_ANNOTATION: "{}"})
    assert_denied(both, names.ASSIGNED_ANNOTATION)
    assert INDEX not in both.body["message"]


# -- what a pod was admitted for -----------------------------------------------------------------------------------

CARD = {names.CARD_NAME_ANNOTATION: "NVIDIA-H200"}


@pytest.mark.parametrize("value", ["K80", None], ids=["changes", "removes"])
def test_the_card_is_fixed_once_the_gate_is_gone(
    tenant_client: ApiClient, pods: Pods, value: str | None
) -> None:
    edit = {names.CARD_NAME_ANNOTATION: value}
    assert_denied(annotate(tenant_client, pods.make(CARD, gates=()), **edit), names.CARD_NAME_ANNOTATION)
    annotate(tenant_client, pods.make(CARD), **edit).expect(200)


def test_a_card_cannot_be_named_afterwards(tenant_client: ApiClient, pods: Pods) -> None:
    path = pods.make(gates=(), managed=False)
    assert_denied(annotate(tenant_client, path, **CARD), names.CARD_NAME_ANNOTATION)


@pytest.mark.parametrize(
    "key", [names.QUEUE_NAME_ANNOTATION, names.JOB_QUEUE_ANNOTATION, names.GROUP_NAME_ANNOTATION]
)
@pytest.mark.parametrize(("managed", "asks"), [(True, {}), (False, CARD)], ids=["labelled", "asks"])
@pytest.mark.parametrize("value", ["other", None], ids=["changes", "removes"])
def test_queue_and_group_are_fixed_once_the_gate_is_gone(
    tenant_client: ApiClient, pods: Pods, key: str, managed: bool, asks: dict[str, str], value: str | None
) -> None:
    annotations = {**asks, key: "mine"}
    ungated = pods.make(annotations, gates=(), managed=managed)
    assert_denied(annotate(tenant_client, ungated, **{key: value}), key)
    annotate(tenant_client, pods.make(annotations, managed=managed), **{key: value}).expect(200)


def test_a_group_may_be_set_on_an_ungated_pod_but_no_queue(tenant_client: ApiClient, pods: Pods) -> None:
    path = pods.make(CARD, gates=())
    annotate(tenant_client, path, **{names.GROUP_NAME_ANNOTATION: "podgroup-1"}).expect(200)
    assert_denied(annotate(tenant_client, path, **{names.QUEUE_NAME_ANNOTATION: "q"}), "fixed once")


def test_pods_that_are_none_of_ours_move_freely(tenant_client: ApiClient, pods: Pods) -> None:
    path = pods.make({names.QUEUE_NAME_ANNOTATION: "a"}, gates=(), managed=False)
    annotate(tenant_client, path, **{names.QUEUE_NAME_ANNOTATION: "b", "example.com/x": "y"}).expect(200)


@pytest.mark.parametrize("key", [names.MGPU_MULTIPLE_ANNOTATION, names.MGPU_POLICY_KEY])
@pytest.mark.parametrize("gated", [True, False])
def test_what_an_mgpu_pod_asks_for_is_fixed(
    tenant_client: ApiClient, pods: Pods, key: str, gated: bool
) -> None:
    limits = {names.MGPU_CORE: 30, names.MGPU_MEMORY: 1024}
    gates = (names.GATE,) if gated else ()
    path = pods.make({key: "1"}, gates=gates, limits=limits)
    assert_denied(annotate(tenant_client, path, **{key: "2"}), key, "immutable")
    other = pods.make({key: "1"}, gates=gates, managed=False)
    annotate(tenant_client, other, **{key: "2"}).expect(200)


# -- creation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [*RECORDS, *NEAR_MISSES])
def test_no_pod_brings_records_along(
    tenant_client: ApiClient, admin: ApiClient, controller: ApiClient, namespace: str, key: str
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "forged", "namespace": namespace, "annotations": {key: "0"}},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    }
    assert_denied(tenant_client.create(pod), key, "creation")
    assert_denied(admin.create(pod), key)


# -- what goes on undisturbed --------------------------------------------------------------------------------------


def test_ordinary_life_goes_on(admin: ApiClient, pods: Pods) -> None:
    path = pods.make(CARD, gates=(), records=RECORDS)
    annotate(admin, path, **{"example.com/note": "x"}).expect(200)
    finalizer = "example.com/hold"
    admin.patch(path, {"metadata": {"finalizers": [finalizer], "labels": {"a": "b"}}}).expect(200)
    condition = {"type": "example.com/Seen", "status": "True"}
    admin.patch(f"{path}/status", {"status": {"conditions": [condition]}}, "strategic").expect(200)
    admin.patch(path, {"metadata": {"finalizers": []}}).expect(200)
    admin.delete(path).expect(200, 202)


def test_namespaces_that_are_left_alone_are_not_protected(
    admin: ApiClient, installation: Installation
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": installation.namespace,
            "annotations": {names.ASSUMED_ANNOTATION: "true"},
        },
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    }
    wait_for("pods can be created", lambda: admin.create(pod).status == 201)
    annotate(admin, admin.path_of(pod), **{names.ASSUMED_ANNOTATION: "false"}).expect(200)


def test_break_glass_deleting_the_bindings_frees_the_way(
    control_plane: ControlPlane, installation: Installation, pods: Pods
) -> None:
    """Last of the module: it puts the binding back, which takes the API server a moment to notice."""
    admin, path = control_plane.api, pods.make()
    binding = of_kind(installation.objects, "ValidatingAdmissionPolicyBinding")["cardquota-gate"]
    admin.delete(admin.path_of(binding)).expect(200)
    remove = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    started = time.monotonic()
    wait_for("the way is free", lambda: admin.patch(path, remove, "json").status == 200)
    assert time.monotonic() - started < 5
    Inventory(admin).apply(binding)
