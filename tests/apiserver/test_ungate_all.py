"""`cardquota ungate-all` beside an installation: out of force, by hand."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, gates, unique
from tests.apiserver.manifests import card_pod, pod, queue

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 90.0
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
IN_FORCE = [
    f"{REGISTRATION}/mutatingwebhookconfigurations/cardquota-mutating",
    f"{REGISTRATION}/validatingwebhookconfigurations/cardquota-validating",
    *[
        f"{REGISTRATION}/{kind}/cardquota-{policy}"
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        for policy in ("gate", "records", "create")
    ],
]


@pytest.fixture
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """One for each test: afterwards it is out of force."""
    with Installation(control_plane) as installed:
        yield installed


def ungate_all(
    kubeconfig: Path, namespace: str, *more: str, stdin: int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    """The command as its user runs it."""
    words = ["ungate-all", f"--namespace={namespace}", f"--kubeconfig={kubeconfig}", *more]
    return subprocess.run(
        [sys.executable, "-m", "cli", *words],
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )


def in_force(plane: ControlPlane) -> list[int]:
    return [plane.api.get(path).status for path in IN_FORCE]


def test_no_pod_is_left_at_the_gate_and_no_later_one_gets_there(
    cluster: Cluster, installation: Installation
) -> None:
    """The leader is at work all the time, and has nothing left to lead with afterwards."""
    card, name = cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, f'{{"{card}": 1}}'))
    cluster.create(*[card_pod(f"p{number}", card, name) for number in range(3)])
    cluster.create(card_pod("theirs", card, name, schedulingGates=[{"name": "example.com/theirs"}]))
    wait_for("one of the three is let in", lambda: len(cluster.gated() - {"theirs"}) == 2)
    (let_in,) = cluster.pods().keys() - cluster.gated()
    before = cluster.pod(let_in)["metadata"]["annotations"]

    done = ungate_all(cluster.plane.admin_kubeconfig, installation.namespace, "--yes")

    assert done.returncode == 0, done.stderr
    assert done.stdout == "cardquota is out of force; 3 gates were taken off, none is left\n"
    assert "MutatingWebhookConfiguration cardquota-mutating: removed" in done.stderr
    assert cluster.gated() == set()
    assert gates(cluster.pod("theirs")) == ["example.com/theirs"]
    assert cluster.pod(let_in)["metadata"]["annotations"].items() >= before.items(), "records stay"
    assert in_force(cluster.plane) == [404] * len(IN_FORCE)
    cluster.create(card_pod("later", card, name))
    assert gates(cluster.pod("later")) == []
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{installation.namespace}/leases/cardquota"
    assert cluster.api.get(lease).status == 404

    again = ungate_all(cluster.plane.admin_kubeconfig, installation.namespace, "--yes")
    assert again.stdout == "cardquota is out of force; 0 gates were taken off, none is left\n"
    assert cluster.api.get(lease).status == 404, "the leader may not make it anew"


def test_it_asks_and_takes_nothing_but_yes_for_an_answer(
    cluster: Cluster, installation: Installation
) -> None:
    card, name = cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, f'{{"{card}": 0}}'))
    cluster.create(card_pod("waits", card, name))
    admin = cluster.plane.admin_kubeconfig
    silent = ungate_all(admin, installation.namespace)
    assert (silent.returncode, silent.stderr) == (2, "error: nobody can be asked here; say --yes\n")
    user, terminal = pty.openpty()
    try:
        os.write(user, b"y\n")
        refused = ungate_all(admin, installation.namespace, stdin=terminal)
        assert refused.returncode == 2
        assert f"1 pod that waits at its gate is let go, in {cluster.namespace}." in refused.stderr
        assert refused.stderr.endswith("error: not done\n")
        assert cluster.gated() == {"waits"}
        assert in_force(cluster.plane) == [200] * len(IN_FORCE)
        os.write(user, b"yes\n")
        assert ungate_all(admin, installation.namespace, stdin=terminal).returncode == 0
    finally:
        os.close(user)
        os.close(terminal)
    assert cluster.gated() == set()


def test_who_has_not_the_rights_is_told_what_is_refused(
    cluster: Cluster, installation: Installation, tenant: Path
) -> None:
    cluster.create(pod("p", annotations={names.CARD_NAME_ANNOTATION: "UNKNOWN"}))
    done = ungate_all(tenant, installation.namespace, "--yes")
    assert done.returncode == 1
    assert "error: 403 Forbidden" in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.gated() == {"p"}
    assert in_force(cluster.plane) == [200] * len(IN_FORCE)
