"""Cards that the settings alone make known, by pool, by resource, by a row of `discovery`: none is a way to the nodes of another.

The tenant's queue has quota for each of them and for none of the dear card, of which there is a node with room.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from core import reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, node
from hack.install import Installation
from tests.adversary import scene
from tests.adversary.scene import NOBODY
from tests.apiserver.cluster import Cluster, Object, charged, gates, terms, unique
from tests.apiserver.manifests import GPU, binding, card_pod, queue

pytestmark = pytest.mark.apiserver

POOLED, NAMED, FOUND, DEAR = "POOLED", "NAMED", "FOUND", "DEAR"
POOL, MODEL = "example.com/pool", "example.com/gpu.model"
QUOTA: Final = {POOLED: 4, NAMED: 4, FOUND: 4}


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    values = {
        "cards": {
            "podsWithoutCardName": "deny",
            "pools": {POOLED: {"labels": {POOL: "p"}, "resource": GPU}},
            "resources": {NAMED: GPU},
        },
        "discovery": [{"vendor": "Example", "product": MODEL, "resources": [GPU]}],
    }
    with Installation(control_plane, values=values) as installed:
        yield installed


@dataclass
class Stage:
    """The tenant, whoever looks on, the queue with its path, and the node of the dear card."""

    admin: Cluster
    tenant: Cluster
    queue: str
    path: str
    dear: str

    def create(self, name: str, card: str, scheduler: str = "default-scheduler") -> None:
        self.tenant.create(card_pod(name, card, self.queue, schedulerName=scheduler))

    def assert_not_on_the_dear_one(self, name: str) -> None:
        """The scheduler finds no node for it, and who would bind it there all the same is refused."""
        wait_for("no node is found for it", lambda: unschedulable(self.admin.pod(name)))
        self.assert_bind_refused(name)

    def assert_bind_refused(self, name: str) -> None:
        answer = self.admin.bind(binding(name, self.dear))
        assert answer.status == 409, answer.body
        assert reasons.CARD_NOT_ON_NODE in answer.body["message"], answer.body
        assert "nodeName" not in self.admin.pod(name)["spec"]


@pytest.fixture
def stage(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Stage]:
    dear, name = unique("dear"), unique("own")
    cluster.add_nodes(gpu_node(dear, product=DEAR, cards=8, memory_mib=143771))
    path = cluster.create_queue(queue(name, json.dumps(QUOTA)))
    with scene.tenancy(control_plane, cluster.namespace) as tenant:
        yield Stage(cluster, tenant, name, path, dear)


def unschedulable(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each.get("reason") == "Unschedulable" for each in conditions) and not gates(pod)


def test_a_card_of_a_pool_without_nodes_waits_for_one_of_the_pool(stage: Stage) -> None:
    """It is let in, for an autoscaler to see it, and led to the pool's labels."""
    stage.create("a", POOLED)
    wait_for("it is let in", lambda: charged(stage.admin.pod("a")))
    assert {POOL} == {
        each["key"] for term in terms(stage.admin.pod("a")) for each in term["matchExpressions"]
    }
    stage.assert_not_on_the_dear_one("a")
    made = unique("pooled")
    stage.admin.add_nodes(node(made, labels={POOL: "p"}, allocatable={GPU: 1}))
    stage.admin.wait_running("a")
    assert stage.admin.pod("a")["spec"]["nodeName"] == made
    stage.admin.wait_allocated(stage.path, {POOLED: 1})


def test_a_card_that_has_nothing_but_a_resource_is_let_in_nowhere(stage: Stage) -> None:
    stage.create("a", NAMED)
    stage.admin.wait_said("a", reasons.NO_FREE_CARD)
    stage.create("past", NAMED, NOBODY)
    stage.assert_bind_refused("past")
    assert gates(stage.admin.pod("a"))
    assert not charged(stage.admin.pod("a"))


def test_a_card_that_a_row_of_the_settings_finds_stays_on_the_nodes_where_it_is_found(stage: Stage) -> None:
    """Also when these are full, and for who comes past the gate."""
    found = unique("found")
    stage.admin.add_nodes(node(found, labels={MODEL: FOUND}, allocatable={GPU: 1}))
    stage.create("a", FOUND)
    stage.admin.wait_running("a")
    assert stage.admin.pod("a")["spec"]["nodeName"] == found
    stage.create("b", FOUND)
    wait_for("it is let in", lambda: charged(stage.admin.pod("b")))
    stage.assert_not_on_the_dear_one("b")
    stage.create("past", FOUND, NOBODY)
    stage.assert_bind_refused("past")
    stage.admin.wait_allocated(stage.path, {FOUND: 1})
    assert stage.admin.running() == {"a"}
