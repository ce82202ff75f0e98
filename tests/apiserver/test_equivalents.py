"""One device under two names on a real control plane: claims and card pods share one quota where `cards.equivalents` says so."""

import json
from collections.abc import Iterator

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, gates, unique
from tests.apiserver.devices import claiming, queue_path
from tests.apiserver.manifests import card_pod, queue
from tests.builders.claims import a_template

CARD, CLASS = "NVIDIA-EQUAL", "equal.nvidia.com"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"cards": {"equivalents": {CARD: [CLASS]}}}) as installed:
        yield installed


def test_a_claim_pod_and_a_card_pod_share_a_quota_of_two(cluster: Cluster) -> None:
    """Each third one waits, whatever its name for the device, and is let in when one of another name goes."""
    cluster.add_nodes(gpu_node(unique("node"), product=CARD, cards=8, memory_mib=81920))
    cluster.make(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": {}}
    )
    cluster.create(a_template("each").exactly("r", CLASS).build())
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({CARD: 2})))
    cluster.create(claiming("claim", name, template="each"))
    wait_for("the claim pod is let in", lambda: names.GATE not in gates(cluster.pod("claim")))
    cluster.create(card_pod("card", CARD, name))
    cluster.wait_running("card")
    short = reasons.INSUFFICIENT_SCALAR_QUOTA
    for late in (card_pod("second-card", CARD, name), claiming("second-claim", name, template="each")):
        cluster.create(late)
        said = cluster.wait_said(late["metadata"]["name"], short)
        assert f"Queue <{name}> has insufficient <{CARD}> quota" in said
        assert "In cards: asks for 1, 2 of 2 are in use" in said
    cluster.wait_allocated(queue_path(name), {CARD: 1, f"deviceclass/{CLASS}": 1})
    cluster.api.delete(cluster.path("claim"), gracePeriodSeconds=0).expect()
    cluster.wait_running("card", "second-card")
