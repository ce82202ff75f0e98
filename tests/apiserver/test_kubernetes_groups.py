"""Gangs by PodGroups of Kubernetes itself, on a control plane whose feature gates are on: kube-scheduler starts by them as well."""

import json
from collections.abc import Iterator

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.leaders import TAKE_OVER_S
from tests.apiserver.manifests import (
    card_pod,
    in_group,
    in_scheduling_group,
    podgroup,
    queue,
    scheduling_group,
)
from tests.apiserver.watching import Watch, within
from tests.builders.documents import is_object, shown
from tests.own_plane import own_plane
from tests.rights import Usage

GATES = ("GenericWorkload", "GangScheduling", "WorkloadWithJob")
SERVED = ("--runtime-config=scheduling.k8s.io/v1alpha2=true",)
OF_KUBERNETES = "podgroups.scheduling.k8s.io"


@pytest.fixture(scope="module")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    with own_plane(request, feature_gates=GATES, api_server_arguments=SERVED) as plane:
        yield plane


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane) as installed:
        yield installed


@pytest.fixture
def card(cluster: Cluster) -> str:
    """A card that one node has eight of, and no other test knows."""
    return cluster.add_card()


def members(gang: str, card: str, in_queue: str, count: int) -> list[Object]:
    pods = (card_pod(f"{gang}-{number}", card, in_queue) for number in range(count))
    return in_scheduling_group(gang, *pods)


def queue_of(cluster: Cluster, card: str, quota: int) -> tuple[str, str]:
    """A queue with so many of the card: its name and its path."""
    name = unique("q")
    return name, cluster.create_queue(queue(name, json.dumps({card: quota})))


def replace_group(cluster: Cluster, name: str, min_count: int | None) -> None:
    """Its policy is immutable, so it is made anew; it goes once no pod of it is left to be scheduled."""
    path = cluster.api.path("scheduling.k8s.io/v1alpha2", "PodGroup", cluster.namespace, name)
    cluster.api.patch(path, {"metadata": {"finalizers": None}}).expect()
    cluster.api.delete(path).expect()
    wait_for("it is gone", lambda: cluster.api.get(path).status == 404)
    if min_count is not None:
        cluster.create(scheduling_group(name, min_count))


def annotations_of(cluster: Cluster, key: str) -> set[str | None]:
    return {pod["metadata"]["annotations"].get(key) for pod in cluster.pods().values()}


def test_three_wait_whole_for_two_cards_and_start_whole_on_three(cluster: Cluster, card: str) -> None:
    name, path = queue_of(cluster, card, 2)
    with Watch(cluster.plane, cluster.path(), within({card: 3})) as watch:
        cluster.create(scheduling_group("train", 3), *members("train", card, name, 3))
        said = cluster.wait_said("train-0", reasons.INSUFFICIENT_SCALAR_QUOTA)
        title = f"PodGroup {cluster.namespace}/train of scheduling.k8s.io"
        assert f"{title} needs 3 more members at once, 2 fit" in said
        assert title in cluster.wait_said("train", reasons.INSUFFICIENT_SCALAR_QUOTA, "PodGroup")
        assert cluster.gated() == {"train-0", "train-1", "train-2"}
        cluster.set_quota(path, json.dumps({card: 3}))
        cluster.wait_running("train-0", "train-1", "train-2")
        watch.catch_up()
    assert watch.complaints == []
    assert annotations_of(cluster, names.GANG_ANNOTATION) == {"3"}
    assert annotations_of(cluster, names.GANG_OF_ANNOTATION) == {
        f"{cluster.namespace}/train@scheduling.k8s.io"
    }


def test_a_missing_podgroup_is_waited_for_and_so_is_a_late_member(cluster: Cluster, card: str) -> None:
    name, _ = queue_of(cluster, card, 8)
    *others, last, extra = members("late", card, name, 4)
    cluster.create(*others)
    said = cluster.wait_said("late-0", reasons.POD_GROUP_NOT_FOUND)
    assert f"PodGroup {cluster.namespace}/late of scheduling.k8s.io is not there" in said
    cluster.create(scheduling_group("late", 3))
    assert "with only 2 ready" in cluster.wait_said("late-0", reasons.GANG_INCOMPLETE)
    cluster.create(last)
    cluster.wait_running("late-0", "late-1", "late-2")
    cluster.create(extra)
    cluster.wait_running(*(f"late-{number}" for number in range(4)))


def test_a_minimum_that_is_raised_while_they_wait_holds_them_until_there_are_so_many(
    cluster: Cluster, card: str
) -> None:
    name, path = queue_of(cluster, card, 1)
    pods = members("more", card, name, 3)
    cluster.create(scheduling_group("more", 2), *pods[:2])
    cluster.wait_said("more-0", reasons.INSUFFICIENT_SCALAR_QUOTA)
    replace_group(cluster, "more", 3)
    cluster.wait_said("more-1", reasons.GANG_INCOMPLETE)
    cluster.set_quota(path, json.dumps({card: 3}))
    wait_for(
        "the quota is known", lambda: "only 2 ready" in cluster.wait_said("more-0", reasons.GANG_INCOMPLETE)
    )
    assert cluster.gated() == {"more-0", "more-1"}
    cluster.create(pods[2])
    cluster.wait_running("more-0", "more-1", "more-2")


def test_members_whose_podgroup_is_deleted_wait_for_it_and_those_that_run_go_on(
    cluster: Cluster, card: str
) -> None:
    name, path = queue_of(cluster, card, 2)
    cluster.create(scheduling_group("gone", 2), *members("gone", card, name, 3))
    wait_for("two of them run", lambda: len(cluster.running()) == 2)
    (left,) = cluster.gated()
    cluster.wait_said(left, reasons.INSUFFICIENT_SCALAR_QUOTA)
    replace_group(cluster, "gone", None)
    cluster.wait_said(left, reasons.POD_GROUP_NOT_FOUND)
    cluster.set_quota(path, json.dumps({card: 3}))
    cluster.create(card_pod("alone", card, name))
    wait_for("another one gets the card", lambda: "alone" in cluster.running())
    assert cluster.gated() == {left}


def test_pods_of_the_basic_policy_start_one_by_one(cluster: Cluster, card: str) -> None:
    name, _ = queue_of(cluster, card, 2)
    cluster.create(scheduling_group("each", None), *members("each", card, name, 3))
    wait_for("two of them run", lambda: len(cluster.running()) == 2)
    (left,) = cluster.gated()
    cluster.wait_said(left, reasons.INSUFFICIENT_SCALAR_QUOTA)


def test_podgroups_of_one_name_are_two_gangs_and_volcanos_counts_where_both_are_named(
    cluster: Cluster, card: str
) -> None:
    name, path = queue_of(cluster, card, 1)
    theirs = in_group("same", *(card_pod(f"theirs-{number}", card, name) for number in range(2)))
    both = in_scheduling_group("same", card_pod("both", card, name))
    cluster.create(podgroup("same", name, 3), scheduling_group("same", 2))
    cluster.create(*theirs, *members("same", card, name, 1))
    assert "needs 3 more members at once, with only 2" in cluster.wait_said(
        "theirs-0", reasons.GANG_INCOMPLETE
    )
    assert "needs 2 more members at once, with only 1" in cluster.wait_said("same-0", reasons.GANG_INCOMPLETE)
    cluster.create(*in_group("same", *both))
    cluster.wait_said("both", reasons.INSUFFICIENT_SCALAR_QUOTA)
    cluster.set_quota(path, json.dumps({card: 3}))
    wait_for("Volcano's are let in", lambda: cluster.gated() == {"same-0"})
    # kube-scheduler knows its own PodGroup alone, and that one lacks another member.
    cluster.wait_running("theirs-0", "theirs-1")


def test_a_real_job_whose_controller_makes_the_podgroup_waits_whole_and_runs_whole(
    cluster: Cluster, card: str
) -> None:
    name, path = queue_of(cluster, card, 2)
    template = card_pod("job", card, name, restartPolicy="Never")
    cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job"},
            "spec": {
                "completionMode": "Indexed",
                "completions": 3,
                "parallelism": 3,
                "template": {
                    "metadata": {"annotations": template["metadata"]["annotations"]},
                    "spec": template["spec"],
                },
            },
        }
    )
    wait_for("its pods are made", lambda: len(cluster.pods()) == 3)
    groups = {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in cluster.pods().values()}
    assert len(groups) == 1
    said = cluster.wait_said(min(cluster.pods()), reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert "needs 3 more members at once, 2 fit" in said
    assert len(cluster.gated()) == 3
    cluster.set_quota(path, json.dumps({card: 3}))
    wait_for("all three run", lambda: len(cluster.running()) == 3)


def test_the_rights_to_read_them_are_used(cluster: Cluster, card: str, installation: Installation) -> None:
    """The first of a gang that goes alone has its PodGroup read once."""
    name, _ = queue_of(cluster, card, 1)
    cluster.create(scheduling_group("lone", 1), *members("lone", card, name, 1))
    cluster.wait_running("lone-0")

    def used() -> set[str]:
        usage = Usage.of(installation)
        assert sorted(usage.beyond) == []
        return {right.verb for right in usage.used if right.resource == OF_KUBERNETES}

    wait_for("all of them are used", lambda: used() == {"get", "list", "watch"}, 90.0)


def test_what_the_pages_show_of_them_is_taken(cluster: Cluster) -> None:
    manifests = [
        document
        for _, document in shown()
        if is_object(document) and document["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    ]
    assert manifests
    for document in manifests:
        assert cluster.try_create(document, dryRun="All").status == 201, document


def test_with_the_rights_of_a_release_that_knew_none_the_leader_works_and_members_wait(
    cluster: Cluster, card: str, installation: Installation
) -> None:
    """The new image before the new ClusterRole: all others are let in, and members as soon as their PodGroup can be read."""
    api = cluster.api
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cardquota-controller"
    rules = api.get(role).expect()["rules"]
    before = [
        {**rule, "apiGroups": [group for group in rule["apiGroups"] if group != "scheduling.k8s.io"]}
        for rule in rules
    ]
    (leader,) = installation.controller_processes
    name, _ = queue_of(cluster, card, 8)
    installation.kill(leader)
    api.patch(role, {"rules": before}).expect()
    try:
        installation.start_again(leader)
        cluster.create(scheduling_group("upgraded", 2), *members("upgraded", card, name, 2))
        cluster.create(card_pod("alone", card, name))
        cluster.wait_running("alone", timeout_s=TAKE_OVER_S)
        cluster.wait_said("upgraded-0", reasons.POD_GROUP_NOT_FOUND)
        assert cluster.gated() == {"upgraded-0", "upgraded-1"}
        assert f'{{failure="Forbidden",resource="{OF_KUBERNETES}"}}' in installation.metrics("controller")
    finally:
        api.patch(role, {"rules": rules}).expect()
    wait_for("the members run as well", lambda: len(cluster.running()) == 3, 90.0)
