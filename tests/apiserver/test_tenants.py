"""What somebody with `edit` in one namespace and the role of a queue reader is told: by events, and by the commands."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from core import reasons
from hack.controlplane import ControlPlane
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.granted import wait_granted_to
from tests.apiserver.manifests import card_pod, queue

HOME = "cards-of-all"
VALUES = {"queueReader": {"groups": ["research"]}, "queue": {"default": "common"}}


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    # Not the usual namespace: the role of queue readers tells who may not look for it.
    with Installation(control_plane, values=VALUES, namespace=HOME) as installed:
        yield installed


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Path:
    """That of a member of the group, who may edit what is in the test's namespace."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    cluster.create(binding)
    content = yaml.safe_load(control_plane.user_kubeconfig("jane", ["research"]).read_text("utf-8"))
    content["contexts"][0]["context"]["namespace"] = cluster.namespace
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(content))
    wait_granted_to(control_plane, path, f"/api/v1/namespaces/{cluster.namespace}/pods")
    return path


def ask(kubeconfig: Path, command: str) -> tuple[dict[str, object], str]:
    """What a command answers, and what it says beside that."""
    arguments = [sys.executable, "-m", "cli", command, "-o", "json", "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer, done.stderr


def test_a_tenant_is_answered_about_the_own_pods_and_told_what_is_left_out(
    installation: Installation, cluster: Cluster, kubeconfig: Path
) -> None:
    del installation
    card, name = cluster.add_card(), unique("shared")
    path = cluster.create_queue(queue(name, json.dumps({card: 1})))
    cluster.create(card_pod("runs", card, name))
    cluster.wait_running("runs")
    cluster.create(card_pod("waits", card, name))
    cluster.wait_said("waits", reasons.INSUFFICIENT_SCALAR_QUOTA)

    queues, said = ask(kubeconfig, "queues")
    assert f"settings of ConfigMap {HOME}/cardquota" in said
    assert f"only those of namespace {cluster.namespace} are known" in said
    shown = queues[name]
    assert isinstance(shown, dict)
    assert (shown["quota"], shown["allocated"], shown["waiting"]) == ({card: "1"}, {card: "1"}, {card: "1"})

    plan, said = ask(kubeconfig, "plan")
    pods = plan["pods"]
    assert isinstance(pods, dict)
    assert pods[f"{cluster.namespace}/waits"]["reason"] == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert ask(kubeconfig, "cards")[0][card]

    cluster.api.patch(
        path, {"metadata": {"annotations": {"volcano.sh/card.quota": json.dumps({card: 2})}}}
    ).expect()
    cluster.wait_running("runs", "waits")
    assert cluster.wait_said("waits", reasons.LIFTED) == (
        f"Queue <{name}> lets the pod in with 1 <{card}>; a scheduler looks for a node now"
    )
    assert len(cluster.events("runs")) == 0
