"""The installed chart: processes under the rendered rights, called by the API server, and gone at the end."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane, audit, nodes, wait_for
from hack.install import Installation
from hack.installation.rendering import of_kind
from tests.apiserver.leaders import TAKE_OVER_S


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    name = f"h200-{secrets.token_hex(4)}"
    control_plane.add_nodes(nodes.h200_node(name, cards=8))
    yield name
    control_plane.api.delete(control_plane.api.path("v1", "Node", name=name)).expect()


@pytest.fixture
def queue(control_plane: ControlPlane, installation: Installation) -> Iterator[str]:
    name = f"q-{secrets.token_hex(4)}"
    thing = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": {names.CARD_QUOTA_ANNOTATION: '{"NVIDIA-H200": 2}'}},
        "spec": {"weight": 1},
    }
    control_plane.api.create(thing).expect(201)
    yield name
    control_plane.api.delete(control_plane.api.path_of(thing)).expect()


def a_card_pod(namespace: str, queue: str) -> dict[str, Any]:
    annotations = {names.CARD_NAME_ANNOTATION: "NVIDIA-H200", names.QUEUE_NAME_ANNOTATION: queue}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{secrets.token_hex(4)}", "namespace": namespace, "annotations": annotations},
        "spec": {
            "containers": [{"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
        },
    }


def accounts_of(installation: Installation) -> str:
    """How the user names of its processes begin."""
    return f"system:serviceaccount:{installation.namespace}:"


def wait_for_phase(plane: ControlPlane, pod: dict[str, Any], phase: str, timeout_s: float = 30.0) -> None:
    path = plane.api.path_of(pod)
    wait_for(
        f"{path} is {phase}", lambda: plane.api.get(path).expect()["status"].get("phase") == phase, timeout_s
    )


def test_a_pod_is_gated_lifted_and_bound_within_the_rendered_rights(
    control_plane: ControlPlane, installation: Installation, namespace: str, node: str, queue: str
) -> None:
    """No request of the two processes is refused for want of a right, and the gate was really there."""
    offset = control_plane.audit_log.stat().st_size
    pod = a_card_pod(namespace, queue)
    created = control_plane.api.create(pod).expect(201)
    assert created["spec"]["schedulingGates"] == [{"name": names.GATE}]
    assert created["metadata"]["labels"][names.MANAGED_LABEL] == "true"
    wait_for_phase(control_plane, pod, "Running")
    accounts = accounts_of(installation)
    ours = [r for r in audit.read(control_plane.audit_log, offset) if r.user.startswith(accounts)]
    assert ours
    assert [request for request in ours if request.code in (401, 403)] == []


def test_no_request_was_refused_since_the_installation(
    control_plane: ControlPlane, installation: Installation
) -> None:
    """A namespace on its way out refuses new events with the same code, whatever the rights: those do not count.

    Nor does what other tests asked in the name of its accounts before.
    """
    accounts = accounts_of(installation)
    since = audit.read(control_plane.audit_log, installation.audited_from)
    ours = [r for r in since if r.user.startswith(accounts)]
    assert {request.user.removeprefix(accounts) for request in ours} >= {"cardquota-webhook"}
    namespaces = control_plane.api.get("/api/v1/namespaces").expect()["items"]
    stay = {n["metadata"]["name"] for n in namespaces if n["status"]["phase"] == "Active"} | {""}
    assert [request for request in ours if request.code == 403 and request.namespace in stay] == []


def test_metrics_of_each_process_can_be_read(installation: Installation) -> None:
    for component, count in (("webhook", 1), ("controller", 2)):
        for index in range(count):
            assert "# TYPE cardquota_" in installation.metrics(component, index)


def test_the_deployments_are_there_without_pods(
    control_plane: ControlPlane, installation: Installation
) -> None:
    for deployment in of_kind(installation.objects, "Deployment").values():
        stored = control_plane.api.get(control_plane.api.path_of(deployment)).expect()
        assert stored["spec"]["replicas"] == 0


def hook_address(plane: ControlPlane) -> str:
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cardquota-mutating"
    entries = {w["name"]: w["clientConfig"] for w in plane.api.get(path).expect()["webhooks"]}
    assert entries["bindings.cardquota.io"]["caBundle"]
    url: str = entries["bindings.cardquota.io"]["url"]
    return url


def test_another_controller_takes_over_when_one_is_killed(
    control_plane: ControlPlane, installation: Installation, namespace: str, node: str, queue: str
) -> None:
    before = hook_address(control_plane)
    assert before.startswith(installation.controller_url(0))
    installation.kill_controller(0)
    assert hook_address(control_plane).startswith(installation.controller_url(1))
    pod = a_card_pod(namespace, queue)
    control_plane.api.create(pod).expect(201)
    wait_for_phase(control_plane, pod, "Running", TAKE_OVER_S)
    installation.start_controller()
    assert [process.running for process in installation.controller_processes] == [False, True, True]
    installation.stop_controller(1)
    assert [process.running for process in installation.controller_processes] == [False, False, True]
    assert installation.controller_processes[1].exit_status == 0
    assert hook_address(control_plane).startswith(installation.controller_url(2))
