"""`explain` on a real cluster: to an administrator all of it, to a tenant what a tenant may know; nothing that is false."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from hack.controlplane import ControlPlane
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, queue


class Explained:
    """The command with somebody's kubeconfig."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, kubeconfig: Path, *arguments: str) -> dict[str, Any]:
        status = main(["explain", *arguments, "--kubeconfig", str(kubeconfig), "-o", "json"])
        told = self._capsys.readouterr()
        assert status == 0, told.err
        found: dict[str, Any] = json.loads(told.out)
        return found


@pytest.fixture
def explained(capsys: pytest.CaptureFixture[str]) -> Explained:
    return Explained(capsys)


@pytest.fixture
def full(cluster: Cluster) -> tuple[str, str]:
    """A card and a queue with quota for two, both in use; `third` waits."""
    card, name = cluster.add_card(8), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 2})))
    cluster.create(card_pod("first", card, name), card_pod("second", card, name))
    cluster.wait_running("first", "second")
    cluster.create(card_pod("third", card, name))
    cluster.wait_said("third", "InsufficientScalarQuota")
    return card, name


def test_what_would_help_is_done_and_helps(
    control_plane: ControlPlane, cluster: Cluster, full: tuple[str, str], explained: Explained
) -> None:
    """The command that is told is run as it stands."""
    card, name = full
    report = explained(control_plane.admin_kubeconfig, f"{cluster.namespace}/third")
    assert (report["decision"], report["queue"], report["position"]["number"]) == ("hold", name, 1)
    assert {one["pod"] for one in report["heldBy"]} == {
        f"{cluster.namespace}/first",
        f"{cluster.namespace}/second",
    }
    step = report["help"][0]["steps"][0]
    assert (step["action"], step["key"], step["by"]) == ("raise", card, "1")
    program, *arguments = shlex.split(step["command"])
    assert program == "kubectl"
    control_plane.kubectl(*arguments)
    cluster.wait_running("first", "second", "third")


def test_to_a_tenant_it_says_what_the_controller_said(
    cluster: Cluster, full: tuple[str, str], tenant: Path, explained: Explained
) -> None:
    """With the role `edit` in one namespace: neither nodes nor queues nor anybody else's pods are to be seen."""
    del full
    report = explained(tenant, "third", "-n", cluster.namespace)
    assert report["decision"] == "hold"
    assert report["said"]["reason"] == "InsufficientScalarQuota"
    assert report["leftOut"] == "Node, Queue, Pod in all namespaces"
    assert "help" not in report
