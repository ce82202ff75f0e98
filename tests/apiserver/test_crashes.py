"""The controller is killed in the middle of its work: what a later one finds in the API server is all that it knows."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http import HTTPStatus

import pytest

from core import names
from hack.controlplane import wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import TAKE_OVER_S
from tests.apiserver.manifests import Object, card_pod, in_group, podgroup, queue
from tests.apiserver.watching import Watch, admitted, within


def kill_the_controller(installation: Installation) -> None:
    installation.kill_controller(len(installation.controller_processes) - 1)


@pytest.mark.timeout(600)
def test_two_kills_while_twenty_pods_pass_through_a_quota_of_seven(
    cluster: Cluster, installation: Installation
) -> None:
    """Killed at its first lift, and its follower at its own; at no event of the watch are more than seven let in."""
    card, name = cluster.add_card(32), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 7})))
    pods = [card_pod(f"p{number:02}", card, name) for number in range(20)]

    def seven_are_in() -> bool:
        return len(admitted(cluster.pods())) == 7

    def all_have_ended() -> bool:
        cluster.finish(*cluster.running())
        return ended(cluster) == set(cluster.pods())

    with Watch(cluster.plane, cluster.path(), within({card: 7})) as watch, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(cluster.try_create, pod) for pod in pods]
        wait_for("somebody is lifted", lambda: admitted(cluster.pods()))
        kill_the_controller(installation)
        assert [answer.result().status for answer in answers] == [201] * 20
        installation.start_controller()
        wait_for("seven are in", seven_are_in, TAKE_OVER_S)
        wait_for("the rest is told", lambda: told(cluster) == cluster.gated(), TAKE_OVER_S)
        wait_for("seven run", lambda: len(cluster.running()) == 7)
        before = cluster.gated()
        cluster.finish(*sorted(cluster.running())[:4])
        wait_for("one more is lifted", lambda: cluster.gated() < before)
        kill_the_controller(installation)
        installation.start_controller()
        wait_for("seven are in again", seven_are_in, TAKE_OVER_S)
        wait_for("all come to their end", all_have_ended)
        watch.catch_up()
    assert watch.complaints == []
    assert watch.events >= 60, "created, lifted and ended, each of the twenty"


def told(cluster: Cluster) -> set[str]:
    """The pods that a leader has held for want of quota."""
    found = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/events").expect()["items"]
    return {e["involvedObject"]["name"] for e in found if e["reason"] == "InsufficientScalarQuota"}


def ended(cluster: Cluster) -> set[str]:
    """The pods that have done their work."""
    return {name for name, pod in cluster.pods().items() if pod["status"].get("phase") == "Succeeded"}


def test_the_next_leader_completes_a_gang_that_was_half_let_in_before_anybody_else(
    cluster: Cluster, installation: Installation
) -> None:
    """One of four is lifted when the controller dies. Pods of a higher priority have come before it is back."""
    card, name = cluster.add_card(), unique("q")
    gang = in_group("gang", *(card_pod(f"gang-{number}", card, name) for number in range(4)))
    urgent = [
        card_pod(f"urgent-{number}", card, name, priorityClassName="system-cluster-critical")
        for number in range(3)
    ]
    with Watch(cluster.plane, cluster.path(), within({card: 4})) as watch:
        cluster.create(podgroup("gang", name, 4), *gang)
        with only_lifted(cluster, installation, "gang-0"):
            cluster.create_queue(queue(name, json.dumps({card: 4})))
            wait_for("the first is lifted", lambda: "gang-0" not in cluster.gated())
            kill_the_controller(installation)
        assert cluster.gated() == {"gang-1", "gang-2", "gang-3"}
        cluster.create(*urgent)
        installation.start_controller()
        whole = {pod["metadata"]["name"] for pod in gang}
        wait_for("the gang runs whole", lambda: cluster.running() == whole, TAKE_OVER_S)
        watch.catch_up()
    assert watch.complaints == []
    assert cluster.gated() == {"urgent-0", "urgent-1", "urgent-2"}
    cluster.finish("gang-0", "gang-1", "gang-2")
    wait_for("the urgent ones follow", lambda: cluster.running() >= {"urgent-0", "urgent-1", "urgent-2"})


@contextmanager
def only_lifted(cluster: Cluster, installation: Installation, pod: str) -> Iterator[None]:
    """Meanwhile the API server refuses every lift in the namespace but that of one pod."""
    policy = unique("only-one")
    gated = f"spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{names.GATE}')"
    of_pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    expression = f"request.namespace == '{cluster.namespace}' && request.name != '{pod}'"
    spec = {
        "matchConstraints": {"resourceRules": [of_pods]},
        "matchConditions": [{"name": "others", "expression": expression}],
        "validations": [{"expression": f"!oldObject.{gated} || object.{gated}", "message": "not now"}],
    }
    binding = {"policyName": policy, "validationActions": ["Deny"]}
    paths = [
        cluster.api.path_of(cluster.api.create(thing).expect(201))
        for thing in (a_policy("", policy, spec), a_policy("Binding", policy, binding))
    ]
    account = cluster.plane.service_account_kubeconfig(installation.namespace, "cardquota-controller")
    lift = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    other = next(name for name in cluster.gated() if name != pod)
    with closing(cluster.plane.client(account)) as controller:

        def lift_is_refused() -> bool:
            answer = controller.patch(cluster.path(other), lift, "json", dryRun="All")
            return answer.status != HTTPStatus.OK

        try:
            wait_for("other lifts are refused", lift_is_refused)
            yield
        finally:
            for path in reversed(paths):
                cluster.api.delete(path).expect()
        wait_for("lifts are stored again", lambda: not lift_is_refused())


def a_policy(suffix: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"ValidatingAdmissionPolicy{suffix}",
        "metadata": {"name": name},
        "spec": spec,
    }
