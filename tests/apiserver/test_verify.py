"""`cardquota verify` on a real control plane: silent about a sound installation, and it finds each thing that is wrong."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, queue

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane) as installed:
        yield installed


class Verify:
    """Runs the command as the administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def __call__(self) -> tuple[int, dict[str, list[str]]]:
        """Exit status, and what is wrong by check."""
        command = [sys.executable, "-m", "cli", "verify", "-o", "json", "--kubeconfig"]
        done = subprocess.run(
            [*command, str(self._plane.admin_kubeconfig)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        wrong: dict[str, list[str]] = {}
        for check in json.loads(done.stdout)["checks"]:
            if check["result"] == "wrong":
                wrong.setdefault(check["check"], []).append(check["found"])
        return done.returncode, wrong


def a_replica(version: str, namespace: str) -> dict[str, Any]:
    """A pod as the chart of some version makes it."""
    labels = {"app.kubernetes.io/name": "cardquota", "app.kubernetes.io/version": version}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"cardquota-webhook-{version}",
            "namespace": namespace,
            "labels": labels,
        },
        "spec": {"containers": [{"name": "cardquota", "image": f"cardquota:{version}"}]},
    }


def test_each_thing_that_is_wrong_is_found(
    control_plane: ControlPlane, installation: Installation, cluster: Cluster
) -> None:
    """One after the other; in the end without the leader, which would mend most of it at once."""
    api, verify = control_plane.api, Verify(control_plane)
    card, name = cluster.add_card(), unique("verified")
    path = cluster.create_queue(queue(name, json.dumps({card: 4})))
    cluster.create(card_pod("a", card, name))
    cluster.wait_running("a")
    cluster.wait_allocated(path, {card: 1})
    assert verify() == (0, {})

    binding = f"{REGISTRATION}/validatingadmissionpolicybindings/cardquota-gate"
    stored = api.get(binding).expect()
    api.delete(binding).expect()
    assert verify() == (1, {"policies": ["cardquota-gate is not bound, so it denies nothing"]})
    stored["metadata"] = {"name": "cardquota-gate"}
    api.create(stored).expect(201)

    pods = [
        api.path_of(api.create(a_replica(version, installation.namespace)).expect(201))
        for version in ("0.1.0", "0.2.0")
    ]
    status, wrong = verify()
    assert (status, list(wrong)) == (1, ["versions"])
    assert "0.1.0 (cardquota:0.1.0), 0.2.0 (cardquota:0.2.0)" in wrong["versions"][0]
    for pod in pods:
        api.delete(pod, gracePeriodSeconds=0).expect()
    assert verify() == (0, {})

    installation.kill_controller(0)
    api.patch(f"{path}/status", {"status": {"allocated": {card: "3"}}}).expect()
    status, wrong = verify()
    told = f"queue {name}: status.allocated shows 3 of {card}, and its pods use 1"
    assert (status, wrong["queue status"]) == (1, [told])

    configuration = f"{REGISTRATION}/mutatingwebhookconfigurations/cardquota-mutating"
    entries = api.get(configuration).expect()["webhooks"]
    for entry in entries:
        if entry["name"] == "pods.cardquota.io":
            del entry["clientConfig"]["caBundle"]
    api.patch(configuration, {"webhooks": entries}).expect()
    status, wrong = verify()
    assert (
        "mutating pods.cardquota.io has no caBundle: the API server trusts nobody there"
        in wrong["certificates"]
    )
    assert "a pod with a card cannot be created in namespace default" in wrong["admission"][0]

    api.delete(configuration).expect()
    status, wrong = verify()
    assert "cardquota-mutating does not exist" in wrong["webhooks"]
    assert names.GATE not in str(wrong)
    assert status == 1


def test_a_webhook_that_answers_nobody(control_plane: ControlPlane, installation: Installation) -> None:
    verify = Verify(control_plane)
    assert verify() == (0, {})
    installation.webhook_processes[0].kill()
    status, wrong = verify()
    assert (status, list(wrong)) == (1, ["admission"])
    assert "pods.cardquota.io" in wrong["admission"][0]
