"""Gangs of one task that accept several cards, before a scheduler that takes one pod of a task for all."""

import json
from collections.abc import Iterator
from typing import ClassVar

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, gates, unique
from tests.apiserver.manifests import card_pod, in_group, podgroup, queue, share_pod
from tests.apiserver.volcano import Scheduler

CYCLES = 5
CARD_MIB = 81920


@pytest.fixture(scope="class")
def installation(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The chart with the VALUES of the test class."""
    with Installation(control_plane, values=request.cls.VALUES) as installed:
        yield installed


class Gang:
    """Four pods of one task that have to start together and accept either of two cards, of which two each are there."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.cards, self.nodes = [unique("CARD"), unique("CARD")], [unique("node"), unique("node")]
        for card, node in zip(self.cards, self.nodes, strict=True):
            cluster.add_nodes(gpu_node(node, product=card, cards=2, memory_mib=143771))
        name = unique("q")
        cluster.create_queue(queue(name, json.dumps(dict.fromkeys(self.cards, 4))))
        cluster.create(podgroup("g", name, 4))
        for number in range(4):
            (pod,) = in_group(
                "g", card_pod(f"g-{number}", "|".join(self.cards), name, schedulerName="volcano")
            )
            pod["metadata"]["annotations"][names.TASK_SPEC_ANNOTATION] = "w"
            cluster.create(pod)

    def lifted(self) -> bool:
        pods = self.cluster.pods().values()
        return len(pods) == 4 and not any(map(gates, pods))

    def bound(self, scheduler: Scheduler) -> int:
        """How many are bound after some cycles."""
        return sum(scheduler.run(*self.nodes) for _ in range(CYCLES))


class TestSpread:
    """The default."""

    VALUES: ClassVar = dict[str, object]()

    def test_a_spread_task_is_told_and_starts_once_the_scheduler_does_not_take_one_pod_for_all(
        self, cluster: Cluster
    ) -> None:
        gang = Gang(cluster)
        wait_for("all four are lifted", gang.lifted)
        said = cluster.wait_said("g", reasons.TASK_SPREAD, kind="PodGroup")
        assert "predicateErrorCacheEnable" in said
        assert gang.bound(Scheduler(cluster)) == 0
        assert gang.bound(Scheduler(cluster, predicate_error_cache=False)) == 4
        cluster.wait_running(*(f"g-{number}" for number in range(4)))
        told = [reason for reason, _ in cluster.events("g", kind="PodGroup")]
        assert told.count(reasons.TASK_SPREAD) == 1

    def test_an_mgpu_task_is_led_to_the_one_node_that_takes_it_whole_and_starts(
        self, cluster: Cluster
    ) -> None:
        """By sums the other node has room for one of them, and the scheduler looks there first."""
        hosts = [unique("mgpu"), unique("mgpu")]
        cluster.add_nodes(*(mgpu_node(host, cards=2, memory_mib=CARD_MIB) for host in hosts))
        cluster.create(*(share_pod(f"x-{number}", 60, 1024) for number in range(2)))
        cluster.wait_running("x-0", "x-1")
        (used,) = {pod["spec"]["nodeName"] for pod in cluster.pods().values()}
        name = unique("q")
        cluster.create_queue(queue(name, json.dumps({"CARD": 1})))
        cluster.create(podgroup("g", name, 2))
        members = [share_pod(f"g-{number}", 80, 1024, schedulerName="volcano") for number in range(2)]
        for member in in_group("g", *members):
            member["metadata"]["annotations"][names.TASK_SPEC_ANNOTATION] = "w"
            cluster.create(member)
        wait_for("both are lifted", lambda: not cluster.gated())
        assert Scheduler(cluster).run(used, *(host for host in hosts if host != used)) == 2
        bound = {pod["spec"]["nodeName"] for name, pod in cluster.pods().items() if name.startswith("g-")}
        assert bound == {*hosts} - {used}

    def test_an_mgpu_task_that_takes_several_nodes_is_nominated_for_them_and_starts(
        self, cluster: Cluster
    ) -> None:
        """By sums the node in use has room for one of them, and the scheduler would send it there again and again."""
        whole, parts = [unique("mgpu"), unique("mgpu")], unique("mgpu")
        pool = unique("pool")
        hosts = [mgpu_node(parts, cards=2, memory_mib=CARD_MIB)]
        hosts += [mgpu_node(host, cards=1, memory_mib=CARD_MIB) for host in whole]
        for host in hosts:
            host["metadata"]["labels"]["pool"] = pool
        cluster.add_nodes(hosts[0])
        cluster.create(*(share_pod(f"x-{n}", 60, 1024, nodeSelector={"pool": pool}) for n in range(2)))
        cluster.wait_running("x-0", "x-1")
        cluster.add_nodes(*hosts[1:])
        name = unique("q")
        cluster.create_queue(queue(name, json.dumps({"CARD": 1})))
        cluster.create(podgroup("g", name, 2))
        members = [
            share_pod(f"g-{n}", 80, 1024, schedulerName="volcano", nodeSelector={"pool": pool})
            for n in range(2)
        ]
        for member in in_group("g", *members):
            member["metadata"]["annotations"][names.TASK_SPEC_ANNOTATION] = "w"
            cluster.create(member)

        def nominated() -> set[str]:
            return {pod.get("status", {}).get("nominatedNodeName", "") for pod in cluster.pods().values()} - {
                ""
            }

        wait_for("both are nominated", lambda: nominated() == {*whole})
        for pod in (cluster.pod("g-0"), cluster.pod("g-1")):
            node = pod["metadata"]["annotations"][names.NOMINATED_ANNOTATION]
            assert pod["status"]["nominatedNodeName"] == node
            assert names.NODE_ANNOTATION not in pod["metadata"]["annotations"]
        gone, kept = whole
        spare = mgpu_node(unique("mgpu"), cards=1, memory_mib=CARD_MIB)
        spare["metadata"]["labels"]["pool"] = pool
        cluster.add_nodes(spare)
        cluster.api.patch(f"/api/v1/nodes/{gone}", {"spec": {"unschedulable": True}}).expect()
        places = {kept, spare["metadata"]["name"]}
        wait_for("the one whose node is cordoned is nominated for another one", lambda: nominated() == places)
        assert Scheduler(cluster).run(parts, *places) == 2
        assert {cluster.pod(f"g-{n}")["spec"]["nodeName"] for n in range(2)} == places


class TestSingle:
    """`cards.multiCardTask: single`."""

    VALUES: ClassVar = {"cards": {"multiCardTask": "single"}}

    def test_it_waits_holding_nothing_until_one_card_serves_it_and_starts_then(
        self, cluster: Cluster
    ) -> None:
        gang = Gang(cluster)
        said = cluster.wait_said("g", reasons.MIXED_CARDS, kind="PodGroup")
        assert f"4 of <{gang.cards[0]}>" in said
        assert len(cluster.gated()) == 4
        gang.nodes.append(unique("node"))
        cluster.add_nodes(gpu_node(gang.nodes[2], product=gang.cards[1], cards=2, memory_mib=143771))
        wait_for("all four are lifted", gang.lifted)
        assert gang.bound(Scheduler(cluster)) == 4
        cluster.wait_running(*(f"g-{number}" for number in range(4)))
