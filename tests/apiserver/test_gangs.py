"""Gangs on the real API server and scheduler: whole or not at all, whatever happens to the controller."""

import json

import pytest

from core import names
from hack.controlplane import wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, gates, unique
from tests.apiserver.manifests import Object, card_pod, queue
from tests.apiserver.test_quota import TAKE_OVER_S, a_gpu_node
from tests.apiserver.watching import Watch


@pytest.fixture
def card(cluster: Cluster) -> str:
    """A card that one node has eight of, and no other test knows."""
    name = unique("CARD")
    cluster.add_nodes(a_gpu_node(unique("node"), name))
    return name


def a_podgroup(name: str, in_queue: str, minimum: int) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": in_queue, "minMember": minimum},
    }


def members(group: str, card: str, in_queue: str, count: int) -> list[Object]:
    """The pods of a gang, `<group>-0` and so on."""
    pods = [card_pod(f"{group}-{number}", card, in_queue) for number in range(count)]
    for pod in pods:
        pod["metadata"]["annotations"][names.GROUP_NAME_ANNOTATION] = group
    return pods


def test_two_gangs_of_four_in_a_quota_of_six(cluster: Cluster, card: str) -> None:
    """One runs whole and the other waits whole; with quota for both, both run."""
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 6})))
    cluster.create(a_podgroup("one", name, 4), *members("one", card, name, 4))
    cluster.wait_running(*(f"one-{i}" for i in range(4)))
    cluster.create(a_podgroup("two", name, 4), *members("two", card, name, 4))
    said = cluster.wait_said("two-0", "InsufficientScalarQuota")
    assert "needs 4 more members at once, 2 fit" in said
    assert cluster.gated() == {f"two-{i}" for i in range(4)}
    cluster.set_quota(path, json.dumps({card: 8}))
    cluster.wait_running(*(f"{gang}-{i}" for gang in ("one", "two") for i in range(4)))


def test_the_gang_starts_when_its_last_member_comes(cluster: Cluster, card: str) -> None:
    """Before, the members are told that the gang is incomplete."""
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 8})))
    first, *others = members("late", card, name, 3)
    cluster.create(a_podgroup("late", name, 3), *others)
    cluster.wait_said("late-1", "GangIncomplete")
    cluster.create(first)
    cluster.wait_running("late-0", "late-1", "late-2")


def test_a_controller_killed_while_it_lifts_a_gang_leaves_it_whole_in_the_end(
    cluster: Cluster, card: str, installation: Installation
) -> None:
    """SIGKILL at the first lift: the next leader completes that gang, and no state shows more than the quota."""
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 6})))
    cluster.create(a_podgroup("gang", name, 6))

    def check(seen: dict[str, Object], _changed: Object) -> str:
        lifted = [pod for pod, stored in seen.items() if names.GATE not in gates(stored)]
        return f"ungated at once: {sorted(lifted)}" if len(lifted) > 6 else ""

    with Watch(cluster.plane, cluster.path(), check) as watch:
        cluster.create(*members("gang", card, name, 6))
        wait_for("somebody is lifted", lambda: len(cluster.gated()) < 6)
        installation.kill_controller(len(installation.controller_processes) - 1)
        cluster.create(*[card_pod(f"other-{number}", card, name) for number in range(3)])
        installation.start_controller()
        whole = {f"gang-{number}" for number in range(6)}
        wait_for("the gang runs whole", lambda: cluster.running() == whole, TAKE_OVER_S)
        watch.catch_up()
    assert watch.complaints == []
    assert cluster.gated() == {f"other-{number}" for number in range(3)}
