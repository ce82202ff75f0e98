"""mGPU shares that count against the quota of their card (`mgpu.cardQuota`), from the gate to Queue status, on a real control plane."""

import json
from collections.abc import Iterator

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, gates, unique
from tests.apiserver.devices import queue_path
from tests.apiserver.manifests import queue, share_pod


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"mgpu": {"cardQuota": True}}) as installed:
        yield installed


def shared_node(product: str) -> Object:
    """A node of four cards in shares that names their product."""
    found = mgpu_node(unique("node"), cards=4)
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "81920"}
    found["metadata"]["labels"] |= labels
    return found


def share_of(name: str, in_queue: str, core: int) -> Object:
    made = share_pod(name, core, 1024)
    made["metadata"].setdefault("annotations", {})[names.QUEUE_NAME_ANNOTATION] = in_queue
    return made


def wait_status(cluster: Cluster, name: str, key: str, amount: str | None) -> None:
    wait_for(
        f"queue {name} shows {amount} of {key}",
        lambda: cluster.allocated(queue_path(name)).get(key) == amount,
    )


def test_quota_0_closes_the_shares_of_a_card_and_quota_1_lets_in_a_hundred_hundredths(
    cluster: Cluster,
) -> None:
    card, other = unique("NVIDIA-A10").upper(), unique("NVIDIA-L20").upper()
    cluster.add_nodes(shared_node(card))
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 0, other: 1})))
    cluster.create(share_of("first", name, 60))
    said = cluster.wait_said("first", reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert f"Queue <{name}> has insufficient <{card}> quota" in said
    assert "In cards: asks for 0.6, more than the whole quota (0)" in said

    cluster.set_quota(queue_path(name), json.dumps({card: 1, other: 1}))
    cluster.wait_running("first")
    stored = cluster.pod("first")["metadata"]["annotations"]
    assert json.loads(stored[names.SHARE_CARD_ANNOTATION]) == {card: 60}
    wait_status(cluster, name, card, "600m")

    cluster.create(share_of("too-much", name, 41))
    said = cluster.wait_said("too-much", reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert "In cards: asks for 0.41, 0.6 of 1 are in use" in said
    cluster.create(share_of("rest", name, 40))
    cluster.wait_running("first", "rest")
    wait_status(cluster, name, card, "1")
    assert names.GATE in gates(cluster.pod("too-much"))

    cluster.add_nodes(shared_node(other))
    cluster.wait_running("first", "rest", "too-much")
    wait_status(cluster, name, other, "410m")


def test_a_tenant_cannot_move_the_charge(cluster: Cluster) -> None:
    card = unique("NVIDIA-A10").upper()
    cluster.add_nodes(shared_node(card))
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 1})))
    forged = share_of("forged", name, 60)
    forged["metadata"]["annotations"][names.SHARE_CARD_ANNOTATION] = "{}"
    refused = cluster.try_create(forged)
    assert refused.status // 100 == 4
    assert names.SHARE_CARD_ANNOTATION in refused.body["message"]
    cluster.create(share_of("honest", name, 60))
    cluster.wait_running("honest")
    for record in ("{}", json.dumps({card: 1}), None):
        patch = {"metadata": {"annotations": {names.SHARE_CARD_ANNOTATION: record}}}
        answer = cluster.api.patch(cluster.path("honest"), patch)
        assert answer.status // 100 == 4, record
    wait_status(cluster, name, card, "600m")
