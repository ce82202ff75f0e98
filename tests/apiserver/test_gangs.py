"""Gangs on the real API server and scheduler: whole or not at all."""

import json

import pytest

from hack.controlplane import wait_for
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import Object, card_pod, in_group, podgroup, queue
from tests.apiserver.watching import Watch, within


@pytest.fixture
def card(cluster: Cluster) -> str:
    """A card that one node has eight of, and no other test knows."""
    return cluster.add_card()


def members(group: str, card: str, in_queue: str, count: int) -> list[Object]:
    """The pods of a gang, `<group>-0` and so on."""
    return in_group(group, *(card_pod(f"{group}-{number}", card, in_queue) for number in range(count)))


def test_two_gangs_of_four_in_a_quota_of_six(cluster: Cluster, card: str) -> None:
    """One runs whole and the other waits whole; with quota for both, both run."""
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 6})))
    cluster.create(podgroup("one", name, 4), *members("one", card, name, 4))
    cluster.wait_running(*(f"one-{i}" for i in range(4)))
    cluster.create(podgroup("two", name, 4), *members("two", card, name, 4))
    said = cluster.wait_said("two-0", "InsufficientScalarQuota")
    assert "needs 4 more members at once, 2 fit" in said
    assert cluster.gated() == {f"two-{i}" for i in range(4)}
    cluster.set_quota(path, json.dumps({card: 8}))
    cluster.wait_running(*(f"{gang}-{i}" for gang in ("one", "two") for i in range(4)))


def test_of_two_gangs_that_come_together_one_runs_and_the_other_follows_it(
    cluster: Cluster, card: str
) -> None:
    """Their pods come in turns, as two controllers create them side by side; neither ever holds a part of the quota."""
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 6})))
    gangs = [members(gang, card, name, 4) for gang in ("one", "two")]
    with Watch(cluster.plane, cluster.path(), within({card: 6})) as watch:
        cluster.create(podgroup("one", name, 4), podgroup("two", name, 4))
        cluster.create(*(pod for pair in zip(*gangs, strict=True) for pod in pair))
        wait_for("one of them runs whole", lambda: len(cluster.running()) == 4)
        first = cluster.running()
        assert len({pod.partition("-")[0] for pod in first}) == 1
        assert len(cluster.gated()) == 4
        cluster.finish(*first)
        second = set(cluster.pods()) - first
        cluster.wait_running(*second)
        watch.catch_up()
    assert watch.complaints == []


def test_the_gang_starts_when_its_last_member_comes(cluster: Cluster, card: str) -> None:
    """Before, the members are told that the gang is incomplete."""
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 8})))
    first, *others = members("late", card, name, 3)
    cluster.create(podgroup("late", name, 3), *others)
    cluster.wait_said("late-1", "GangIncomplete")
    cluster.create(first)
    cluster.wait_running("late-0", "late-1", "late-2")
