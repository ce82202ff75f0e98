"""Cards of a node pool without nodes: pods come out of the gate, an autoscaler sees them pending and makes the nodes they need."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, mgpu_node, node
from hack.install import Installation
from tests.apiserver.cluster import Cluster
from tests.apiserver.manifests import card_pod, in_group, podgroup, queue, share_pod

LABEL = "example.com/pool"
POOLS = {"POOLED-A": "a", "POOLED-B": "b", "POOLED-S": "s"}
SHARES = "POOLED-S"
"""The card of the pool that brings mGPU shares: one on each node, and each pod here asks for half of it."""
PER_NODE = 2
SCALED_S = 60.0
"""Two rounds of the autoscaler, and after each the scheduler may leave a pod alone for 10 s before it tries it again."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    pools = {card: {"labels": {LABEL: pool}, "resource": "nvidia.com/gpu"} for card, pool in POOLS.items()}
    pools[SHARES] = {
        "labels": {LABEL: POOLS[SHARES], names.MGPU_NODE_TYPE_LABEL: "mgpu"},
        "resource": names.MGPU_CORE,
    }
    with Installation(control_plane, values={"cards": {"pools": pools}}) as installed:
        yield installed


class Autoscaler:
    """Adds a node to a pool while a pod of this namespace is unschedulable that only its labels admit, and takes idle ones away.

    A new node has the labels of its pool and its resource at first, and what a labeller says of it in the next round. An idle one
    is cordoned and goes in the round after that, if it is idle still: a scheduler may have bound a pod to it at that moment.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, "autoscaler")
        self.nodes: dict[str, str] = {}
        """Node -> its card."""
        self.made = 0
        self._cordoned: set[str] = set()

    def __enter__(self) -> Self:
        self._running = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for name in list(self.nodes):
            self._cluster.api.delete(f"/api/v1/nodes/{name}").expect(200, 404)
        self._running.result()  # raises what has ended it early

    def _run(self) -> None:
        while not self._stop.wait(0.3):
            pods = list(self._cluster.pods().values())
            for name, card in list(self.nodes.items()):
                self._label(name, card)
            waiting = [pod for pod in pods if _unschedulable(pod)]
            for card, pool in POOLS.items():
                wanted = sum(1 for pod in waiting if _admits(pod, _template(card, pool)))
                free = sum(PER_NODE - _on(pods, name) for name, its in self.nodes.items() if its == card)
                if wanted > free:
                    self._add(card, pool)
            used = {pod["spec"].get("nodeName") for pod in pods}
            for name in list(self.nodes):
                if name in used or waiting:
                    self._cordon(name, cordoned=False)
                elif name in self._cordoned:
                    del self.nodes[name]
                    self._cluster.api.delete(f"/api/v1/nodes/{name}").expect(200, 404)
                else:
                    self._cordon(name, cordoned=True)

    def _cordon(self, name: str, *, cordoned: bool) -> None:
        if cordoned != (name in self._cordoned):
            body = {"spec": {"unschedulable": cordoned}}
            self._cluster.api.patch(f"/api/v1/nodes/{name}", body, "merge").expect(200)
            self._cordoned ^= {name}

    def _add(self, card: str, pool: str) -> None:
        self.made += 1
        name = f"{pool}-{self.made}"
        if card == SHARES:
            new = mgpu_node(name, cards=1, policy=None)
            new["metadata"]["labels"][LABEL] = pool
        else:
            new = node(name, labels={LABEL: pool}, allocatable={"nvidia.com/gpu": PER_NODE})
        self._cluster.plane.add_nodes(new)
        self.nodes[name] = card

    def _label(self, name: str, card: str) -> None:
        if card == SHARES:
            return
        shown = gpu_node(name, product=card, cards=PER_NODE, memory_mib=81920)["metadata"]["labels"]
        body = {"metadata": {"labels": shown}}
        self._cluster.api.patch(f"/api/v1/nodes/{name}", body, "merge").expect(200, 404)


def _template(card: str, pool: str) -> dict[str, str]:
    """The labels of a node of the pool, as an autoscaler knows them."""
    kind = {names.MGPU_NODE_TYPE_LABEL: "mgpu"} if card == SHARES else {"nvidia.com/gpu.product": card}
    return {LABEL: pool, **kind}


def _unschedulable(pod: dict[str, Any]) -> bool:
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in pod.get("status", {}).get("conditions", [])
    ) and not pod["spec"].get("nodeName")


def _on(pods: list[dict[str, Any]], name: str) -> int:
    return sum(1 for pod in pods if pod["spec"].get("nodeName") == name)


def _admits(pod: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a node with these labels would do, as an autoscaler finds out from its template of the pool."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return any(
        all(
            each["key"] not in labels
            if each["operator"] == "DoesNotExist"
            else each["operator"] == "In" and labels.get(each["key"]) in each["values"]
            for each in term["matchExpressions"]
        )
        for term in required
    )


@pytest.fixture
def autoscaler(cluster: Cluster) -> Iterator[Autoscaler]:
    with Autoscaler(cluster) as running:
        yield running


def cards(cluster: Cluster) -> dict[str, int]:
    """Card -> how many running pods have it by their record."""
    found: dict[str, int] = {}
    for name in cluster.running():
        (card,) = json.loads(cluster.pod(name)["metadata"]["annotations"][names.ASSIGNED_ANNOTATION])
        found[card] = found.get(card, 0) + 1
    return found


def test_from_nothing_to_the_quota_and_back(cluster: Cluster, autoscaler: Autoscaler) -> None:
    path = cluster.create_queue(queue("pooled", json.dumps({"POOLED-A": 3})))
    cluster.create(*(card_pod(f"p{number}", "POOLED-A", "pooled") for number in range(4)))
    wait_for("three run", lambda: len(cluster.running()) == 3, SCALED_S)
    assert len(cluster.gated()) == 1
    assert len(autoscaler.nodes) == 2
    cluster.wait_allocated(path, {"POOLED-A": 3})
    back_to_nothing(cluster, autoscaler)
    cluster.create(card_pod("again", "POOLED-A", "pooled"))
    cluster.wait_running("again", timeout_s=SCALED_S)


def test_a_choice_gets_the_leftmost_card_that_has_quota(cluster: Cluster, autoscaler: Autoscaler) -> None:
    path = cluster.create_queue(queue("choosing", json.dumps({"POOLED-A": 1, "POOLED-B": 1})))
    cluster.create(*(card_pod(f"p{number}", "POOLED-A|POOLED-B", "choosing") for number in range(3)))
    wait_for("two run", lambda: len(cluster.running()) == 2, SCALED_S)
    assert cards(cluster) == {"POOLED-A": 1, "POOLED-B": 1}
    assert len(cluster.gated()) == 1
    assert sorted(autoscaler.nodes.values()) == ["POOLED-A", "POOLED-B"]
    cluster.wait_allocated(path, {"POOLED-A": 1, "POOLED-B": 1})
    back_to_nothing(cluster, autoscaler)


def test_a_gang_is_let_in_whole_or_not_at_all(cluster: Cluster, autoscaler: Autoscaler) -> None:
    small = cluster.create_queue(queue("ganging", json.dumps({"POOLED-B": 3})))
    gang = in_group("gang", *(card_pod(f"m{number}", "POOLED-B", "ganging") for number in range(4)))
    cluster.create(podgroup("gang", "ganging", 4), *gang)
    cluster.wait_said("gang", "InsufficientScalarQuota", "PodGroup")
    assert len(cluster.gated()) == 4
    cluster.set_quota(small, json.dumps({"POOLED-B": 4}))
    wait_for("all four run", lambda: len(cluster.running()) == 4, SCALED_S)
    assert cards(cluster) == {"POOLED-B": 4}
    back_to_nothing(cluster, autoscaler)


def test_mgpu_shares_come_out_of_the_gate_up_to_the_quota_and_get_their_cards(
    cluster: Cluster, autoscaler: Autoscaler
) -> None:
    shares = queue("sharing", "{}")
    shares["spec"]["capability"] = {names.MGPU_CORE: "150"}
    cluster.create_queue(shares)
    annotations = {names.QUEUE_NAME_ANNOTATION: "sharing"}
    cluster.create(*(share_pod(f"s{number}", 50, 1024, annotations=annotations) for number in range(4)))
    wait_for("three run", lambda: len(cluster.running()) == 3, SCALED_S)
    assert len(cluster.gated()) == 1
    assert list(autoscaler.nodes.values()) == [SHARES, SHARES]
    for name in cluster.running():
        record = cluster.pod(name)["metadata"]["annotations"]
        assert [text for key, text in record.items() if key.startswith(names.GPU_INDEX_PREFIX)] == ["0"]
    back_to_nothing(cluster, autoscaler)
    cluster.create(share_pod("again", 50, 1024, annotations=annotations))
    cluster.wait_running("again", timeout_s=SCALED_S)


def back_to_nothing(cluster: Cluster, autoscaler: Autoscaler) -> None:
    """All pods gone, and with them the nodes."""
    for pod in list(cluster.pods()):
        cluster.api.delete(cluster.path(pod)).expect(200, 404)
    wait_for("the pool is empty again", lambda: not autoscaler.nodes and not cluster.pods(), SCALED_S)
