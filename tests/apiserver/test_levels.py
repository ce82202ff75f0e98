"""Card quotas through the tree of queues on a real control plane: what whoever uses and writes them sees."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.devices import queue_path
from tests.apiserver.manifests import binding, card_pod, in_group, podgroup, queue

SHORT = reasons.INSUFFICIENT_SCALAR_QUOTA


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"cards": {"hierarchy": True}}) as installed:
        yield installed


class Organisation:
    """A queue with two others below it, and a card of the test's own on sixteen places."""

    def __init__(self, cluster: Cluster, quota: int | None) -> None:
        self.cluster = cluster
        self.card = cluster.add_card(16)
        self.org = self.queue("org", quota)
        self.red, self.blue = (self.queue(name, 8, parent=self.org) for name in ("red", "blue"))

    def queue(self, name: str, quota: int | None, *, parent: str = "") -> str:
        """Create a queue, below another one where that is named."""
        made = self.manifest(unique(name), quota, parent=parent)
        self.cluster.create_queue(made)
        return str(made["metadata"]["name"])

    def manifest(self, name: str, quota: int | None, *, parent: str = "") -> dict[str, Any]:
        made = queue(name, json.dumps({} if quota is None else {self.card: quota}))
        return {**made, "spec": {"weight": 1, **({"parent": parent} if parent else {})}}

    def pod(self, name: str, queue: str, count: int = 1, **spec: Any) -> dict[str, Any]:
        return card_pod(name, self.card, queue, count, **spec)

    def run(self, name: str, queue: str, count: int = 1) -> None:
        """Create a pod; returns once it runs with those that do already."""
        others = self.cluster.running()
        self.cluster.create(self.pod(name, queue, count))
        self.cluster.wait_running(name, *others)

    def set_quota(self, queue: str, quota: int) -> None:
        self.cluster.set_quota(queue_path(queue), json.dumps({self.card: quota}))

    def wait_shown(self, queue: str, count: int) -> None:
        self.cluster.wait_allocated(queue_path(queue), {self.card: count} if count else {})

    def short(self, queue: str, below: str, pod: str) -> str:
        """Wait until the pod is told that this queue is short, and below which it waits; what it is told."""
        said = self.cluster.wait_said(pod, SHORT)
        assert f"Queue <{queue}> has insufficient <{self.card}> quota" in said
        assert f"(queue {below} is below it)" in said
        return said


def test_teams_share_what_their_organisation_has(cluster: Cluster) -> None:
    """What one gives back the other gets, and so does what the organisation is given more."""
    teams = Organisation(cluster, 3)
    teams.run("a", teams.red, 2)
    cluster.create(teams.pod("b", teams.blue, 2))
    assert "asks for 2, 2 of 3 are in use" in teams.short(teams.org, teams.blue, "b")
    teams.set_quota(teams.org, 4)
    cluster.wait_running("a", "b")
    cluster.create(teams.pod("c", teams.blue))
    teams.short(teams.org, teams.blue, "c")
    assert cluster.gated() == {"c"}
    cluster.finish("a")
    cluster.wait_running("b", "c")


def test_a_queue_shows_what_those_below_it_use(cluster: Cluster, installation: Installation) -> None:
    """In its status; the metrics count each pod in its own queue alone, so that their sums are right."""
    teams = Organisation(cluster, 8)
    teams.run("a", teams.red, 2)
    teams.run("b", teams.blue)
    for name, count in ((teams.red, 2), (teams.blue, 1), (teams.org, 3)):
        teams.wait_shown(name, count)
    text, labels = installation.metrics("controller"), {"card": teams.card}
    assert samples(text, "volcano_queue_card_allocated", queue_name=teams.red, **labels) == 2
    assert samples(text, "volcano_queue_card_allocated", queue_name=teams.org, **labels) == 0
    teams.set_quota(teams.org, 1)

    def overused() -> bool:
        page = installation.metrics("controller")
        return samples(page, "cardquota_queue_card_overused", queue_name=teams.org, **labels) == 2

    wait_for("the organisation is shown over its quota", overused)
    for pod in ("a", "b"):
        cluster.finish(pod)
    for name in (teams.red, teams.blue, teams.org):
        teams.wait_shown(name, 0)


def test_a_gang_waits_whole_for_the_queue_above(cluster: Cluster) -> None:
    teams = Organisation(cluster, 3)
    teams.run("a", teams.red, 2)
    cluster.create(podgroup("g", teams.blue, 2))
    cluster.create(*in_group("g", *(teams.pod(f"g-{number}", teams.blue) for number in range(2))))
    teams.short(teams.org, teams.blue, "g-0")
    assert {"g-0", "g-1"} <= cluster.gated()
    cluster.finish("a")
    cluster.wait_running("g-0", "g-1")


def test_a_team_that_moves_takes_its_use_along(cluster: Cluster) -> None:
    teams = Organisation(cluster, 2)
    other = teams.queue("other", 8)
    teams.run("a", teams.red, 2)
    cluster.create(teams.pod("b", teams.blue))
    teams.short(teams.org, teams.blue, "b")
    cluster.api.patch(queue_path(teams.red), {"spec": {"parent": other}}).expect()
    cluster.wait_running("a", "b")
    teams.wait_shown(other, 2)
    teams.wait_shown(teams.org, 1)


def test_below_a_parent_that_is_not_there_pods_wait_until_it_is(cluster: Cluster) -> None:
    teams = Organisation(cluster, 2)
    missing = unique("missing")
    lost = teams.queue("lost", 8, parent=missing)
    cluster.create(teams.pod("a", lost))
    said = cluster.wait_said("a", reasons.QUEUE_HIERARCHY_BROKEN)
    assert f"queue {lost} has the parent {missing}, which does not exist" in said
    teams.run("b", teams.red)
    cluster.create_queue(teams.manifest(missing, 1))
    cluster.wait_running("a", "b")


def test_a_bind_past_the_gate_is_asked_for_room_above(cluster: Cluster) -> None:
    """Of a scheduler that is none of ours nobody gates the pods: their bind is where the quota holds."""
    teams = Organisation(cluster, 1)
    node = next(
        each["metadata"]["name"]
        for each in cluster.api.get("/api/v1/nodes").expect()["items"]
        if teams.card in str(each["metadata"]["labels"])
    )
    teams.run("a", teams.red)
    cluster.create(teams.pod("b", teams.blue, schedulerName="another"))
    answer = cluster.bind(binding("b", node))
    assert answer.status >= 400
    assert f"Queue <{teams.org}> has insufficient <{teams.card}> quota" in answer.body["message"]
    cluster.finish("a")
    wait_for("the bind goes through", lambda: cluster.bind(binding("b", node)).status < 300)
    record = json.loads(cluster.pod("b")["metadata"]["annotations"][names.ASSIGNED_ANNOTATION])
    assert record == {teams.card: 1}


def test_promises_beyond_the_queue_above_are_warned_about(
    cluster: Cluster, control_plane: ControlPlane
) -> None:
    teams = Organisation(cluster, 8)

    def told() -> str:
        made = teams.manifest(teams.red, 9, parent=teams.org)
        done = control_plane.kubectl(
            "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(made), check=False
        )
        assert done.returncode == 0
        return str(done.stderr)

    wait_for(
        "the promises of all teams are compared with what the organisation has",
        lambda: f"the queues below {teams.org} are promised 17 together, and it has 8" in told(),
    )
