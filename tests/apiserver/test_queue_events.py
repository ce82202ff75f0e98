"""What is said when quota and pods do not go together for long: a cut, a rollout at full quota, a pod without a node."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, samples, unique
from tests.apiserver.manifests import card_pod, deployment, in_group, podgroup, queue


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart, except that a pod is late for its node after a second."""
    with Installation(control_plane, values={"reservation": {"warnAfter": "1s"}}) as installed:
        yield installed


class Team:
    """A queue with two cards of a kind that one node has eight of."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.card, self.queue = cluster.add_card(), unique("q")
        self.path = cluster.create_queue(queue(self.queue, json.dumps({self.card: 2})))

    def pod(self, name: str, **spec: Any) -> Object:
        return card_pod(name, self.card, self.queue, **spec)

    def quota(self, cards: int) -> None:
        self.cluster.set_quota(self.path, json.dumps({self.card: cards}))

    def told(self) -> list[tuple[str, str]]:
        """Reason and message of each event about the queue; those of cluster-scoped objects are in `default`."""
        query = {"fieldSelector": f"involvedObject.name={self.queue},involvedObject.kind=Queue"}
        found = self.cluster.api.get("/api/v1/namespaces/default/events", **query).expect()["items"]
        return [(event["reason"], event["message"]) for event in found]


@pytest.fixture
def team(cluster: Cluster) -> Team:
    return Team(cluster)


def test_a_quota_below_what_is_used_is_told_on_the_queue_and_nothing_is_deleted(
    team: Team, installation: Installation
) -> None:
    """Again only with the next cut; a pod that waits meanwhile is not let in by a pod that ends."""
    team.cluster.create(team.pod("a"), team.pod("b"))
    team.cluster.wait_running("a", "b")
    before = {name: pod["metadata"]["uid"] for name, pod in team.cluster.pods().items()}
    team.quota(1)
    wait_for("the queue is told", team.told)
    assert team.told() == [
        (
            reasons.QUOTA_EXCEEDED,
            (
                f"Queue <{team.queue}> uses more than its quota: <{team.card}> used <2000>, but capability is <1000>; "
                "nothing is evicted, nothing more is lifted. Wait until pods end, delete some, or raise the queue's quota."
            ),
        )
    ]
    assert _of(installation, "cardquota_queue_card_overused", team) == 1
    assert _of(installation, "volcano_queue_card_allocated", team) == 2
    assert _of(installation, "volcano_queue_card_deserved", team) == 1
    team.cluster.create(team.pod("c"))
    team.cluster.wait_said("c", reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert {
        name: pod["metadata"]["uid"] for name, pod in team.cluster.pods().items() if name != "c"
    } == before
    team.cluster.api.delete(team.cluster.path("a")).expect()
    wait_for("a is gone", lambda: _of(installation, "cardquota_queue_card_overused", team) == 0)
    assert len(team.told()) == 1
    team.quota(0)
    wait_for("the queue is told of the next cut", lambda: len(team.told()) == 2)
    assert team.cluster.running() == {"b"}


def _of(installation: Installation, metric: str, team: Team) -> float:
    return samples(installation.metrics("controller", -1), metric, queue_name=team.queue, card=team.card)


def a_rolling_deployment(team: Team) -> str:
    """Two replicas that use up the quota, with one pod of surge and none to spare; returns the Deployment's path."""
    made = deployment("web", team.pod("x"), 2)
    made["spec"]["strategy"] = _rolling(surge=1, unavailable=0)
    team.cluster.create(made)
    wait_for("both replicas run", lambda: len(team.cluster.running()) == 2)
    return f"/apis/apps/v1/namespaces/{team.cluster.namespace}/deployments/web"


def _rolling(*, surge: int, unavailable: int) -> Object:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def _without_surge(team: Team, path: str) -> None:
    strategy = _rolling(surge=0, unavailable=1)
    team.cluster.api.patch(path, {"spec": {"strategy": strategy}}).expect()


def _with_more_quota(team: Team, _path: str) -> None:
    team.quota(3)


@pytest.mark.parametrize("way_out", [_without_surge, _with_more_quota])
def test_a_rollout_at_full_quota_is_told_what_it_waits_for_and_ends_by_either_way_out(
    team: Team, way_out: Callable[[Team, str], None]
) -> None:
    path = a_rolling_deployment(team)
    old = team.cluster.running()
    team.cluster.api.patch(
        path, {"spec": {"template": {"metadata": {"annotations": {"example.com/version": "2"}}}}}
    ).expect()
    wait_for("the surge pod waits", team.cluster.gated)
    (new,) = team.cluster.gated()
    said = team.cluster.wait_said(new, reasons.ROLLOUT_NEEDS_QUOTA)
    older = team.cluster.pod(min(old))["metadata"]["ownerReferences"][0]["name"]
    assert said == (
        f"Queue <{team.queue}>: Deployment {team.cluster.namespace}/web rolls out, and the quota of <{team.card}> that "
        f"this pod waits for is held by pods of its older ReplicaSet {older}; set maxSurge 0 and maxUnavailable 1, or "
        "raise the quota"
    )
    team.cluster.wait_said(new, reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert team.cluster.running() == old
    way_out(team, path)
    wait_for("the rollout is complete", lambda: _rolled_out(team, path))
    assert not team.cluster.running() & old


def _rolled_out(team: Team, path: str) -> bool:
    stored = team.cluster.api.get(path).expect()
    status = stored["status"]
    current = status.get("observedGeneration") == stored["metadata"]["generation"]
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas")]
    return current and counts == [2, 2, 2] and len(team.cluster.pods()) == 2


def test_a_lifted_pod_that_no_node_takes_is_told_since_when_it_holds_quota(
    team: Team, installation: Installation
) -> None:
    """The time is that of the lift, as the API server noted it; the pod keeps its quota, and stays."""
    team.cluster.create(team.pod("stuck", nodeSelector={"example.com/rack": "nowhere"}), team.pod("fine"))
    said = team.cluster.wait_said("stuck", reasons.RESERVED_TOO_LONG)
    stored = team.cluster.pod("stuck")
    (lift,) = [e for e in stored["metadata"]["managedFields"] if e["manager"] == names.FIELD_MANAGER]
    assert said == (
        f"Queue <{team.queue}>: the pod has had quota since {lift['time']} and no node for more than 1 s. "
        "Look at the scheduler's events of the pod; delete it to give the quota back."
    )
    metrics = installation.metrics("controller", -1)
    assert samples(metrics, "cardquota_reserved_too_long", queue_name=team.queue) == 1
    assert reasons.RESERVED_TOO_LONG not in dict(team.cluster.events("fine"))
    team.cluster.api.delete(team.cluster.path("stuck")).expect()
    wait_for("it is not counted any more", lambda: _late(installation, team) == 0)
    assert len(team.cluster.events("stuck")) == 1


def _late(installation: Installation, team: Team) -> float:
    return samples(
        installation.metrics("controller", -1), "cardquota_reserved_too_long", queue_name=team.queue
    )


def _stored(team: Team) -> dict[str, str]:
    """Name and version of each of our events about pods, as a new leader asks for them."""
    path = f"/apis/events.k8s.io/v1/namespaces/{team.cluster.namespace}/events"
    found = team.cluster.api.get(path, fieldSelector="reportingController=cardquota").expect()["items"]
    return {event["metadata"]["name"]: event["metadata"]["resourceVersion"] for event in found}


def test_of_a_gang_whose_members_come_one_after_the_other_each_is_told_once(team: Team) -> None:
    """What it lacks while they come is not said; the PodGroup and every member hear what it waits for in the end."""
    members = [f"g-{number}" for number in range(4)]
    team.cluster.create(podgroup("g", team.queue, 4))
    team.cluster.create(*in_group("g", *(team.pod(name) for name in members)))
    text = team.cluster.wait_said("g", reasons.INSUFFICIENT_SCALAR_QUOTA, "PodGroup")
    assert "needs 4 more members at once, 2 fit" in text
    for name in members:
        assert team.cluster.wait_said(name, reasons.INSUFFICIENT_SCALAR_QUOTA) == text
    assert len(_stored(team)) == 5


def test_a_new_leader_says_nothing_again(team: Team, installation: Installation) -> None:
    """It finds what was said by the name of the reporter, and goes on from there."""
    waiting = [f"w{number}" for number in range(20)]
    team.cluster.create(team.pod("a"), team.pod("b"), *(team.pod(name) for name in waiting))
    for name in waiting:
        team.cluster.wait_said(name, reasons.INSUFFICIENT_SCALAR_QUOTA)
    team.quota(1)
    wait_for("the queue is told", team.told)
    before = _stored(team)
    installation.start_controller()
    installation.stop_controller(len(installation.controller_processes) - 2)
    team.cluster.create(team.pod("new"))
    team.cluster.wait_said("new", reasons.INSUFFICIENT_SCALAR_QUOTA)
    after = _stored(team)
    assert len(after) == len(before) + 1
    assert after.items() >= before.items()
    assert len(team.told()) == 1
