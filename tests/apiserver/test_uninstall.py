"""`helm uninstall` with pods at the gate: no gate is left, and nothing of ours but the CRDs."""

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.installation.hook_jobs import HookJobs
from hack.installation.release import Release
from hack.installation.rendering import RenderError
from tests.apiserver.cluster import Cluster, gates, unique
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.test_ungate_all import ungate_all

WAITING = 500
CRDS = {f"customresourcedefinitions/{plural}.scheduling.volcano.sh" for plural in ("queues", "podgroups")}
KINDS = {
    "/api/v1": ("serviceaccounts", "services", "secrets", "configmaps"),
    "/apis/apps/v1": ("deployments", "replicasets"),
    "/apis/batch/v1": ("jobs",),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/networking.k8s.io/v1": ("networkpolicies",),
    "/apis/coordination.k8s.io/v1": ("leases",),
    "/apis/rbac.authorization.k8s.io/v1": (
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "rolebindings",
    ),
    "/apis/admissionregistration.k8s.io/v1": (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ),
    "/apis/apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "/apis/scheduling.k8s.io/v1": ("priorityclasses",),
}


@pytest.fixture
def release(control_plane: ControlPlane) -> Iterator[Release]:
    with Release(control_plane, unique("release"), {"crds": {"install": True}}) as made:
        made.there_before |= ours(made)
        yield made


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    made = Cluster(control_plane, namespace)
    yield made
    made.close()


def ours(release: Release) -> set[str]:
    """Everything that carries our name, or lies in the release's namespace, as `kind/name`."""
    found = set()
    for group, kinds in KINDS.items():
        for kind in kinds:
            for item in release.plane.api.get(f"{group}/{kind}").expect()["items"]:
                head = item["metadata"]
                # Those of every namespace.
                if head["name"] in ("default", "kube-root-ca.crt") or "deletionTimestamp" in head:
                    continue
                if (
                    "cardquota" in head["name"]
                    or head.get("namespace") == release.namespace
                    or head.get("labels", {}).get("app.kubernetes.io/part-of") == "cardquota"
                ):
                    found.add(f"{kind}/{head['name']}")
    return found


def nothing_is_left(release: Release) -> None:
    """The garbage collector takes a moment for what belonged to Deployments. What other tests have left here is not ours."""
    left: set[str] = set()

    def all_gone() -> bool:
        left.clear()
        left.update(ours(release) - CRDS - release.there_before)
        return not left

    try:
        wait_for("nothing of ours is left but the CRDs", all_gone, 30.0)
    finally:
        assert sorted(left) == []


def put_at_the_gate(cluster: Cluster, count: int) -> None:
    """Pods as the webhook leaves them, with nobody to ask."""
    gated: dict[str, Any] = {"schedulingGates": [{"name": names.GATE}], "schedulerName": "nobody"}

    def make(number: int) -> None:
        pod = card_pod(f"w{number}", "CARD", "q", **gated)
        pod["metadata"]["labels"] = {names.MANAGED_LABEL: "true"}
        cluster.create(pod)

    with ThreadPoolExecutor(8) as makers:
        list(makers.map(make, range(count)))


def test_with_both_deployments_dead_five_hundred_pods_go_and_nothing_stays(
    cluster: Cluster, release: Release
) -> None:
    """Nobody answers at the webhooks, and the hook has the rendered rights and no others."""
    put_at_the_gate(cluster, WAITING)
    assert "`helm uninstall` lets every pod go that waits at the gate" in release.install()
    assert len(cluster.gated()) == WAITING
    assert not any("uninstall" in name for name in ours(release)), "rights of the hook, and no hook runs"
    with HookJobs(cluster.plane, release.namespace) as jobs:
        release.helm("uninstall")
    assert jobs.accounts == ["cardquota-uninstall"]
    assert f"cardquota is out of force; {WAITING} gates were taken off, none is left" in jobs.logs[0]
    assert cluster.gated() == set()
    assert len(cluster.pods()) == WAITING
    nothing_is_left(release)


def test_while_both_processes_work_pods_that_come_meanwhile_are_not_left_either(
    cluster: Cluster, release: Release
) -> None:
    card, name = cluster.add_card(), unique("q")
    release.install()
    release.launch("webhook")
    release.start("controller")
    release.wait_in_force()
    cluster.create_queue(queue(name, f'{{"{card}": 1}}'))
    cluster.create(*[card_pod(f"w{number}", card, name) for number in range(20)])
    wait_for("one is let in", lambda: len(cluster.gated()) == 19)
    (let_in,) = cluster.pods().keys() - cluster.gated()
    stop = threading.Event()

    def come() -> int:
        number = 0
        while not stop.wait(0.1):
            # Between the webhook's end and the API server's hearing of it a pod may be refused; its owner comes again.
            number += cluster.try_create(card_pod(f"later{number}", card, name)).status == 201
        return number

    with ThreadPoolExecutor(1) as owner, HookJobs(cluster.plane, release.namespace) as jobs:
        later = owner.submit(come)
        try:
            release.helm("uninstall")
        finally:
            stop.set()
        assert later.result() > 10
    assert "none is left" in jobs.logs[0]
    assert {name: gates(pod) for name, pod in cluster.pods().items() if gates(pod)} == {}
    assert cluster.pod(let_in)["metadata"]["annotations"][names.CHARGED_QUEUE_ANNOTATION] == name
    release.kill()
    nothing_is_left(release)


def test_a_hook_that_is_killed_half_way_is_begun_again_and_ends(cluster: Cluster, release: Release) -> None:
    """By the Job, for a pod whose node is lost; and by the user, where helm has run out of patience."""
    put_at_the_gate(cluster, 120)
    release.values["uninstall"] = {"podsPerSecond": 6}
    release.install()
    killed: list[int] = []

    def kill_half_way(process: "subprocess.Popen[str]") -> None:
        if not killed:
            wait_for("some gates are gone", lambda: len(cluster.gated()) < 110)
            process.kill()
            killed.append(len(cluster.gated()))

    with HookJobs(cluster.plane, release.namespace, kill_half_way):
        with pytest.raises(RenderError, match=r"(?i)timed out|deadline"):
            release.helm("uninstall", "--timeout=20s")
        assert 0 < killed[0] < 110
        assert cluster.gated(), "it is too soon for this test"
        assert "deployments/cardquota-controller" in ours(release), "nothing else is removed before the gates"
        release.helm("uninstall")
    assert cluster.gated() == set()
    nothing_is_left(release)


def test_after_an_uninstall_that_was_given_up_an_upgrade_brings_everything_back(
    cluster: Cluster, release: Release
) -> None:
    def rules() -> set[str]:
        return {
            name for name in ours(release) if "webhook" in name or "admission" in name or "bindings" in name
        }

    release.install()
    before = rules()
    done = ungate_all(cluster.plane.admin_kubeconfig, release.namespace, "--yes")
    assert done.returncode == 0, done.stderr
    assert len(before - rules()) == 13
    release.install(command="upgrade")
    assert rules() == before


def test_who_wants_no_hook_gets_none(release: Release) -> None:
    release.values["uninstall"] = {"ungate": False}
    assert "Pods that wait at the gate keep waiting after an uninstall" in release.install()
    release.helm("uninstall")
    nothing_is_left(release)


def test_helm_test_says_whether_the_installation_is_whole(cluster: Cluster, release: Release) -> None:
    """It reads with its own rights, and fails where something is missing."""
    # The Deployments' own pods need a node to be available.
    cluster.add_card()
    release.install()
    release.launch("webhook")
    release.start("controller")
    release.wait_in_force()
    path = f"/apis/apps/v1/namespaces/{release.namespace}/deployments"

    def available() -> bool:
        found = cluster.api.get(path).expect()["items"]
        return all(each["status"].get("availableReplicas") == each["spec"]["replicas"] for each in found)

    wait_for("the Deployments are available", available)
    with HookJobs(cluster.plane, release.namespace) as jobs:
        release.helm("test")
    assert jobs.accounts == ["cardquota-test"]
    assert "WRONG" not in jobs.logs[0]
    found = {line.split()[0]: line.split()[1] for line in jobs.logs[0].splitlines() if len(line.split()) > 1}
    assert {found[check] for check in ("settings", "leader", "webhooks", "policies", "records")} == {"ok"}, (
        jobs.logs[0]
    )
    binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/cardquota-gate"
    cluster.api.delete(binding).expect()
    with (
        HookJobs(cluster.plane, release.namespace) as jobs,
        pytest.raises(RenderError, match="cardquota-test"),
    ):
        release.helm("test")
    assert "cardquota-gate is not bound" in jobs.logs[0]
    left = {name for name in ours(release) if "cardquota-test" in name}
    assert left == {"jobs/cardquota-test"}, "what it said is kept, and no right"
