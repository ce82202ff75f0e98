"""The local control plane is real, complete, and leaves nothing behind."""

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane import ApiError, ControlPlane, ProcessError, audit, components, nodes, wait_for


@pytest.fixture
def gpu_node(control_plane: ControlPlane) -> Iterator[str]:
    name = f"gpu-{secrets.token_hex(4)}"
    control_plane.add_nodes(nodes.h200_node(name, cards=8))
    yield name
    control_plane.api.delete(control_plane.api.path("v1", "Node", name=name)).expect()


def a_pod(namespace: str, name: str, node: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        },
    }


def wait_for_phase(plane: ControlPlane, pod: dict[str, Any], phase: str) -> dict[str, Any]:
    path = plane.api.path_of(pod)
    wait_for(f"{path} is {phase}", lambda: plane.api.get(path).expect()["status"].get("phase") == phase)
    stored: dict[str, Any] = plane.api.get(path).expect()
    return stored


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def pids_of(plane: ControlPlane) -> list[int]:
    return [process.pid for process in plane.processes.values() if process.pid is not None]


def test_a_pod_runs_on_a_gpu_node_through_the_real_scheduler(
    control_plane: ControlPlane, namespace: str, gpu_node: str
) -> None:
    pod = a_pod(namespace, "p", gpu_node)
    control_plane.api.create(pod).expect(201)
    running = wait_for_phase(control_plane, pod, "Running")
    assert running["spec"]["nodeName"] == gpu_node
    assert running["status"]["containerStatuses"][0]["ready"] is True


def test_a_pod_completes_when_its_annotation_asks_for_it(
    control_plane: ControlPlane, namespace: str, gpu_node: str
) -> None:
    pod = a_pod(namespace, "p", gpu_node, **{components.COMPLETE_AFTER: "10ms"})
    control_plane.api.create(pod).expect(201)
    done = wait_for_phase(control_plane, pod, "Succeeded")
    assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(("wish", "lingers"), [({}, False), ({components.DELETE_AFTER: "1h"}, True)])
def test_a_deleted_pod_goes_at_once_unless_its_annotation_asks_for_time(
    control_plane: ControlPlane, namespace: str, gpu_node: str, wish: dict[str, str], lingers: bool
) -> None:
    pod, other = a_pod(namespace, "p", gpu_node, **wish), a_pod(namespace, "other", gpu_node)
    for item in (pod, other):
        control_plane.api.create(item).expect(201)
        wait_for_phase(control_plane, item, "Running")
    for item in (pod, other):
        control_plane.api.delete(control_plane.api.path_of(item)).expect()
    # Deleted later than the pod in question: once it is gone, the pod has had its chance.
    wait_for(
        "the other is gone", lambda: control_plane.api.get(control_plane.api.path_of(other)).status == 404
    )
    path = control_plane.api.path_of(pod)
    if lingers:
        assert "deletionTimestamp" in control_plane.api.get(path).expect()["metadata"]
        control_plane.api.delete(path, gracePeriodSeconds=0).expect()
    wait_for("the pod is gone", lambda: control_plane.api.get(path).status == 404)


def test_a_deployment_gets_its_pods_from_the_controller_manager(
    control_plane: ControlPlane, namespace: str, gpu_node: str
) -> None:
    template = a_pod(namespace, "unused", gpu_node)
    template["metadata"] = {"labels": {"app": "d"}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }
    control_plane.apply(deployment)
    path = control_plane.api.path_of(deployment)
    wait_for(
        "both replicas are ready",
        lambda: control_plane.api.get(path).expect().get("status", {}).get("readyReplicas") == 2,
    )


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            nodes.mig_mps_node,
            {"nvidia.com/gpu": "5", "nvidia.com/gpu.shared": "16", "nvidia.com/mig-1g.10gb": "3"},
        ),
        (nodes.mgpu_node, {nodes.MGPU_CORE: "200", nodes.MGPU_MEMORY: "163840"}),
    ],
)
def test_a_nodes_shares_are_what_the_api_server_shows(
    control_plane: ControlPlane, make: Any, expected: dict[str, str]
) -> None:
    node = make(f"shares-{secrets.token_hex(4)}")
    control_plane.add_nodes(node)
    path = control_plane.api.path_of(node)
    try:
        assert control_plane.api.get(path).expect()["status"]["allocatable"].items() >= expected.items()
    finally:
        control_plane.api.delete(path).expect()


def test_kubectl_reads_the_version_of_the_server(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "-o", "json").stdout)
    assert versions["serverVersion"]["gitVersion"].startswith("v1.")
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]
    assert versions["serverVersion"]["minor"].isdecimal()


def test_dynamic_resource_allocation_is_served(control_plane: ControlPlane) -> None:
    assert control_plane.api.path("resource.k8s.io/v1", "ResourceClaim", "ns", "c").endswith(
        "/namespaces/ns/resourceclaims/c"
    )


def test_a_service_account_may_do_what_rbac_grants_and_no_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "reader", create=True)
    client = control_plane.client(kubeconfig)
    pods = control_plane.api.path("v1", "Pod", namespace)
    assert client.get(pods).status == 403
    control_plane.kubectl(
        "-n",
        namespace,
        "create",
        "rolebinding",
        "r",
        "--clusterrole=view",
        f"--serviceaccount={namespace}:reader",
    )
    wait_for("the role binding is seen", lambda: client.get(pods).status == 200)
    assert client.get(control_plane.api.path("v1", "Pod", "default")).status == 403
    assert (
        control_plane.kubectl("auth", "whoami", kubeconfig=kubeconfig).stdout.count(f":{namespace}:reader")
        == 1
    )
    client.close()


def test_a_tenant_edits_the_own_namespace_only(
    control_plane: ControlPlane, namespace: str, tenant: Path
) -> None:
    allowed = control_plane.kubectl("auth", "can-i", "create", "pods", "-n", namespace, kubeconfig=tenant)
    assert allowed.stdout.strip() == "yes"
    denied = control_plane.kubectl("auth", "can-i", "create", "pods", kubeconfig=tenant, check=False)
    assert denied.stdout.strip() == "no"


def test_the_audit_log_has_every_answered_request(
    control_plane: ControlPlane, namespace: str, tenant: Path
) -> None:
    offset = control_plane.audit_log.stat().st_size
    client = control_plane.client(tenant)
    path = control_plane.api.path("v1", "ConfigMap", namespace, "absent")
    for _ in range(3):
        client.get(path).expect(404)
    client.close()

    def seen() -> list[audit.AuditedRequest]:
        entries = audit.read(control_plane.audit_log, offset)
        return [entry for entry in entries if entry.user.startswith("tenant-of")]

    wait_for("the last request is recorded", lambda: len(seen()) >= 3)
    assert [(entry.verb, entry.resource, entry.name, entry.code) for entry in seen()] == [
        ("get", "configmaps", "absent", 404)
    ] * 3


def test_a_refused_apply_names_the_reason(control_plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(ApiError, match=r"^422: Pod \"p\" is invalid"):
        control_plane.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": {}}
        )


def test_a_scheduler_can_be_stopped_and_started(
    control_plane: ControlPlane, namespace: str, gpu_node: str
) -> None:
    config = "profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]"
    scheduler = control_plane.start_scheduler(config, name="second")
    with pytest.raises(ProcessError, match="runs already"):
        control_plane.start_scheduler(config, name="second")
    scheduler.stop()
    assert not scheduler.running
    pod = a_pod(namespace, "p", gpu_node)
    pod["spec"]["schedulerName"] = "second"
    control_plane.api.create(pod).expect(201)
    control_plane.start_process("kube-scheduler-second")
    wait_for_phase(control_plane, pod, "Running")
    control_plane.kill_process("kube-scheduler-second")
    assert scheduler.exit_status == -9


def test_a_program_of_ones_own_runs_beside_the_others(control_plane: ControlPlane, tmp_path: Path) -> None:
    marker = tmp_path / "up"
    script = f"touch {marker}; exec sleep 600"
    program = control_plane.start_program("mine", ["sh", "-c", script], ready=marker.exists)
    assert control_plane.processes["mine"] is program
    control_plane.stop_process("mine")
    assert program.exit_status == -15


def test_objects_survive_a_restart_of_the_api_server(control_plane: ControlPlane, namespace: str) -> None:
    before = control_plane.processes["kube-apiserver"].pid
    control_plane.restart("kube-apiserver")
    assert control_plane.processes["kube-apiserver"].pid != before
    assert control_plane.api.get(control_plane.api.path("v1", "Namespace", name=namespace)).status == 200


def test_nothing_is_left_behind_after_exit() -> None:
    with ControlPlane(scheduler=False, controller_manager=False, kwok=False) as plane:
        plane.add_nodes(nodes.h200_node("n1"))
        assert plane.api.create(a_pod("default", "p", "n1")).status == 201
        directory, pids = plane.directory, [*pids_of(plane), plane.supervisor_pid]
        assert len(alive(pids)) == 3
    assert alive(pids) == []
    assert not directory.exists()
    assert not Path(f"{directory}-logs").exists()


def test_a_failed_start_says_why_and_keeps_the_logs() -> None:
    plane = ControlPlane(
        scheduler=False, controller_manager=False, kwok=False, api_server_arguments=["--no-such-flag"]
    )
    with pytest.raises(ProcessError, match="unknown flag: --no-such-flag") as failure, plane:
        pytest.fail("started")
    (note,) = failure.value.__notes__
    logs = plane.log_directory
    assert note == f"the logs of the control plane are in {logs}"
    assert "unknown flag" in (logs / "kube-apiserver.log").read_text()
    assert not plane.directory.exists()
    for file in logs.iterdir():
        file.unlink()
    logs.rmdir()


def test_a_log_folder_of_ones_own_is_kept(tmp_path: Path) -> None:
    with ControlPlane(
        scheduler=False, controller_manager=False, kwok=False, log_dir=tmp_path / "logs"
    ) as plane:
        directory = plane.directory
        assert os.access(directory, os.X_OK)
    assert {file.name for file in (tmp_path / "logs").iterdir()} == {
        "audit.log",
        "etcd.log",
        "kube-apiserver.log",
    }
    assert not directory.exists()
