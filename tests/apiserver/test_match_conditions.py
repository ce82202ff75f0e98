"""Which pods and bindings the API server sends to which webhook entry of the chart; the real one decides."""

from collections.abc import Iterator
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.installation.inventory import Inventory
from tests.apiserver.recorder import Recorder, recording
from tests.apiserver.sending import (
    BINDINGS,
    GATE,
    H200,
    HINTS,
    MGPU,
    NAMESPACE,
    PROTECTION,
    RULES,
    STRATEGY,
    Send,
    a_pod,
    sent_to,
)

EXEMPT = "exempt-from-quota"
GPU = {"nvidia.com/gpu": 1}
NOT_DEVICES = [f"example.com/r{number}" for number in range(20)]


@pytest.fixture(scope="module")
def recorder(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    values = {"webhook": {"exemptNamespaces": [EXEMPT]}, "dra": {"notDevices": ["rdma/hca", *NOT_DEVICES]}}
    with (
        recording(tmp_path_factory.mktemp("recorder")) as server,
        sent_to(control_plane, server, values),
    ):
        yield server


@pytest.fixture
def send(control_plane: ControlPlane, recorder: Recorder) -> Send:
    return Send(control_plane, recorder)


# -- pods ----------------------------------------------------------------------------------------------------------

INIT = {"name": "i", "image": "none", "resources": {"limits": MGPU}}
MAIN = {"name": "c", "image": "none"}
NODE_NAMES: dict[str, Any] = {"nodeName": "some-node"}
MIRROR = {names.MIRROR_POD_ANNOTATION: "x"}
CLAIM = [{"name": "dev", "resourceClaimTemplateName": "t"}]

PODS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "cpu only": ({"limits": {"cpu": 1}}, []),
    "no limits, no annotations": ({}, []),
    "a card": ({"annotations": H200, "limits": GPU}, [GATE, RULES]),
    "alternatives": ({"annotations": {names.CARD_NAME_ANNOTATION: "A|B"}, "limits": GPU}, [GATE, RULES]),
    "a card without its resource": ({"annotations": H200}, [GATE, RULES]),
    "an empty card name": ({"annotations": {names.CARD_NAME_ANNOTATION: ""}}, [GATE, RULES]),
    "mgpu": ({"limits": MGPU}, [GATE, RULES]),
    "mgpu core alone": ({"limits": {names.MGPU_CORE: 100}}, [GATE, RULES]),
    "mgpu in an init container": ({"initContainers": [INIT]}, [GATE, RULES]),
    "card counts": ({"annotations": {names.MGPU_MULTIPLE_ANNOTATION: "2"}}, [GATE, RULES]),
    "claims": ({"resourceClaims": CLAIM}, [GATE, RULES]),
    "a card, bound by its creator": ({"annotations": H200, **NODE_NAMES}, [RULES]),
    "claims, bound by its creator": ({"resourceClaims": CLAIM, **NODE_NAMES}, [RULES]),
    "a mirror pod": ({"annotations": {**H200, **MIRROR}, **NODE_NAMES}, [RULES]),
    "cpu, bound by its creator": (NODE_NAMES, []),
    "another scheduler": ({"annotations": H200, "schedulerName": "other"}, [GATE, RULES]),
    "a gpu without a name": ({"limits": GPU}, [GATE, RULES]),
    "a mig slice without a name": ({"limits": {"nvidia.com/mig-1g.10gb": 1}}, [GATE, RULES]),
    "a resource that stands for a DeviceClass": (
        {"limits": {f"{names.DEVICE_CLASS_RESOURCE_PREFIX}gpu": 1}},
        [GATE, RULES],
    ),
    "an extended resource that is never a device": ({"limits": {"rdma/hca": 1}}, [HINTS]),
    "a misspelt name": ({"annotations": {names.CARD_NAME_MISPRINT: "A"}}, [HINTS]),
    "a strategy": ({"annotations": {names.CROSSQUOTA_STRATEGY_ANNOTATION: "least-allocated"}}, []),
    "an unknown strategy": ({"annotations": {names.CROSSQUOTA_STRATEGY_ANNOTATION: "random"}}, [STRATEGY]),
    "another vendor": ({"limits": {"amd.com/gpu": 1}}, [GATE, RULES]),
    "a queue name": ({"annotations": {names.QUEUE_NAME_ANNOTATION: "q"}}, []),
}


@pytest.mark.parametrize("case", PODS)
def test_pod_creation(send: Send, namespace: str, case: str) -> None:
    arguments, expected = PODS[case]
    assert send.create(a_pod(namespace, **arguments)) == expected


def test_a_request_without_limit_is_seen_before_the_api_server_refuses_it(send: Send, namespace: str) -> None:
    container = {"name": "c", "image": "none", "resources": {"requests": MGPU}}
    assert send.create(a_pod(namespace, containers=[container]), 422) == [GATE]


def test_many_containers_and_annotations_stay_within_the_cost_budget(send: Send, namespace: str) -> None:
    amounts = dict.fromkeys(NOT_DEVICES, 1)
    containers = [
        {"name": f"c{number}", "image": "none", "resources": {"limits": amounts, "requests": amounts}}
        for number in range(500)
    ]
    annotations = {f"example.com/a{number}": "" for number in range(5000)}
    assert send.create(a_pod(namespace, containers=containers, annotations=annotations)) == [HINTS]


@pytest.mark.parametrize("broken", [{"containers": None}, {"containers": [{"name": "c", "resources": None}]}])
def test_what_is_null_shows_no_expression_to_the_user(
    control_plane: ControlPlane, recorder: Recorder, namespace: str, broken: dict[str, Any]
) -> None:
    pod = a_pod(namespace)
    pod["spec"].update(broken)
    path = control_plane.api.path_of(pod, collection=True)
    answer = control_plane.api.request("POST", f"{path}?dryRun=All", pod)
    assert answer.status == 422, answer.body["message"]
    assert answer.body["message"].startswith("Pod ")


def test_null_annotations_are_no_annotations(send: Send, namespace: str) -> None:
    pod = a_pod(namespace, limits={"cpu": 1})
    pod["metadata"]["annotations"] = None
    assert send.create(pod) == []


@pytest.mark.parametrize("exempt", ["kube-system", "kube-node-lease", NAMESPACE, EXEMPT])
def test_some_namespaces_are_left_alone(control_plane: ControlPlane, send: Send, exempt: str) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": exempt}}
    inventory = Inventory(control_plane.api)
    inventory.apply(space)
    account = f"/api/v1/namespaces/{exempt}/serviceaccounts/default"
    try:
        wait_for("pods can be created", lambda: control_plane.api.get(account).status == 200)
        assert send.create(a_pod(exempt, annotations=H200)) == []
    finally:
        inventory.remove()


GATED: dict[str, Any] = {"schedulingGates": [{"name": names.GATE}]}
RENAMED = {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: "NVIDIA-H100"}}}


@pytest.mark.parametrize(
    ("spec", "patch", "expected"),
    [
        (GATED, RENAMED, [RULES]),
        (GATED, {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: None}}}, [RULES]),
        (GATED, {"metadata": {"labels": {"a": "b"}}}, []),
        ({}, RENAMED, []),
    ],
    ids=["card changed while gated", "card removed while gated", "label changed", "card changed afterwards"],
)
def test_pod_update(
    send: Send, namespace: str, spec: dict[str, Any], patch: Any, expected: list[str]
) -> None:
    pod = a_pod(namespace, annotations=H200, **spec)
    send.store(pod)
    assert send.patch(pod, patch) == expected
    assert send.patch(pod, patch, "status") == []


# -- bindings ------------------------------------------------------------------------------------------------------


def test_both_ways_to_bind_are_sent(send: Send, namespace: str) -> None:
    pod = a_pod(namespace)
    send.store(pod)
    base = f"/api/v1/namespaces/{namespace}"
    assert send.bind(pod, f"{base}/pods/{pod['metadata']['name']}/binding", "n") == [BINDINGS]
    assert send.bind(pod, f"{base}/bindings", "n") == [BINDINGS]


# -- without policies ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protecting(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Last of the module: the chart with its policies off."""
    with (
        recording(tmp_path_factory.mktemp("protecting")) as server,
        sent_to(control_plane, server, {"policies": {"enabled": False}}),
    ):
        yield Send(control_plane, server)


def test_without_policies_protected_changes_are_sent(protecting: Send, namespace: str) -> None:
    pod = a_pod(namespace, annotations=H200, **GATED)
    protecting.store(pod)
    assert protecting.patch(pod, {"spec": {"schedulingGates": None}}) == [PROTECTION]
    assert protecting.patch(pod, {"metadata": {"labels": {names.MANAGED_LABEL: "x"}}}) == [PROTECTION]
    for key in (names.ASSIGNED_ANNOTATION, names.ASSUMED_ANNOTATION, names.QUEUE_NAME_ANNOTATION):
        edit = {"metadata": {"annotations": {key: "x"}}}
        assert protecting.patch(pod, edit) == [PROTECTION]
        assert protecting.patch(pod, edit, "status") == [PROTECTION]
    assert protecting.patch(pod, RENAMED) == [RULES, PROTECTION]
    assert protecting.patch(pod, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}) == []
    condition = {"type": "example.com/Seen", "status": "True"}
    assert protecting.patch(pod, {"status": {"conditions": [condition]}}, "status") == []


def test_without_policies_pods_that_bring_records_are_sent(protecting: Send, namespace: str) -> None:
    assert protecting.create(a_pod(namespace, annotations={names.ASSUMED_ANNOTATION: "true"})) == [PROTECTION]
    assert protecting.create(a_pod(namespace, limits={"cpu": 1})) == []
