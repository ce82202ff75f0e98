"""Gangs that were cut in half: told, and where that is set one gives back what it holds so that the other one runs."""

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, gates, samples, unique
from tests.apiserver.manifests import JOB_OUT_OF_REACH, Object, card_pod, in_group, podgroup, queue

VALUES = {"reservation": {"warnAfter": "1s", "unfinishedAfter": "8s"}}
"""Between the two both gangs have to be seen as they are cut short, on a slow machine as well."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart with a controller that does not leave gangs unfinished for long."""
    with Installation(control_plane, values=VALUES) as installed:
        yield installed


def member(gang: str, number: int, card: str, name: str) -> Object:
    """A pod of a gang of Volcano's scheduler, which does not run here, so that it stays without a node."""
    (pod,) = in_group(gang, card_pod(f"{gang}-{number}", card, name, schedulerName="volcano"))
    pod["metadata"]["ownerReferences"] = [JOB_OUT_OF_REACH]
    return pod


def in_(cluster: Cluster, gang: str) -> set[str]:
    """The members that are past the gate, by name."""
    return {pod for pod, stored in cluster.pods().items() if pod.startswith(gang) and not gates(stored)}


def wait_in(cluster: Cluster, gang: str, count: int) -> None:
    wait_for(f"{count} members of {gang} are in", lambda: len(in_(cluster, gang)) == count)


def test_of_two_gangs_cut_in_half_by_hand_one_is_finished(
    cluster: Cluster, installation: Installation
) -> None:
    """Quota for eight lets both in; it is cut to six, and one member of each is lost and made anew."""
    card, name = cluster.add_card(), unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 8})))
    for gang in ("one", "two"):
        cluster.create(podgroup(gang, name, 4), *(member(gang, number, card, name) for number in range(4)))
        wait_in(cluster, gang, 4)
    cluster.set_quota(path, json.dumps({card: 6}))
    for gang in ("two", "one"):  # whoever is unfinished for long enough alone gives back, the older one too
        cluster.api.delete(cluster.path(f"{gang}-3"), gracePeriodSeconds=0).expect()
        cluster.create(member(gang, 3, card, name))
    cluster.wait_said("two", reasons.GANG_UNFINISHED, kind="PodGroup")

    def unfinished(count: int) -> bool:
        metrics = installation.metrics("controller")
        return samples(metrics, "cardquota_gangs_unfinished", queue_name=name) == count

    wait_for("both are counted", lambda: unfinished(2))
    before = cluster.pods()

    def given_back() -> bool:
        return len(cluster.pods()) == 5

    wait_for("the younger gang has given back what it held", given_back)
    for number in range(3):
        cluster.wait_said(f"two-{number}", reasons.GANG_GIVEN_BACK)
    wait_in(cluster, "one", 4)
    cluster.create(*(member("two", number, card, name) for number in range(3)))
    wait_in(cluster, "two", 0)
    now = cluster.pods()
    kept = [f"one-{number}" for number in range(4)]
    assert [now[pod]["metadata"]["uid"] for pod in kept] == [before[pod]["metadata"]["uid"] for pod in kept]
    assert now["one-3"]["metadata"]["annotations"][names.GANG_ANNOTATION] == "4"
    wait_for("nothing is unfinished any more", lambda: unfinished(0))
    assert in_(cluster, "two") == set()


REFUSED = ("half-2", "half-3")
MENDED_S = 90.0
"""A lift that was refused is tried anew after half a minute."""


def refuse(cluster: Cluster, *pods: str) -> list[str]:
    """Somebody's policy that lets nobody change these pods; the paths of what it is made of."""
    name = unique("strangers")
    api = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}}
    validation = {"expression": f"!(object.metadata.name in {[*pods]})", "message": "not on a Sunday"}
    policy = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], **here},
            "validations": [{**validation, "reason": "Forbidden"}],
        },
    }
    bound = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    paths = [cluster.make(each) for each in (policy, bound)]

    def in_force() -> bool:
        answers = [cluster.api.patch(cluster.path(pod), {}, dryRun="All") for pod in pods]
        return all(answer.status == HTTPStatus.FORBIDDEN for answer in answers)

    wait_for("the policy is in force", in_force)
    return paths


def test_half_a_gang_whose_other_half_may_not_be_lifted_is_told_gives_back_and_comes_whole_later(
    cluster: Cluster, installation: Installation
) -> None:
    card, name = cluster.add_card(), unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 1})))
    members = [member("half", number, card, name) for number in range(4)]
    cluster.create(podgroup("half", name, 4), *members)
    *_, binding = refuse(cluster, *REFUSED)
    cluster.set_quota(path, json.dumps({card: 4}))
    for pod in REFUSED:
        assert "not on a Sunday" in cluster.wait_said(pod, reasons.LIFT_REFUSED)
    said = cluster.wait_said("half", reasons.GANG_UNFINISHED, kind="PodGroup")
    assert "lacks 2 (the events of those that wait say why)" in said
    for number in range(2):
        cluster.wait_said(f"half-{number}", reasons.GANG_GIVEN_BACK)
    wait_for("what was in is given back", lambda: {*cluster.pods()} == {*REFUSED})
    assert in_(cluster, "half") == set()
    cluster.api.delete(binding).expect()
    cluster.create(*members[:2])
    wait_for("the gang is whole", lambda: len(in_(cluster, "half")) == 4, MENDED_S)
