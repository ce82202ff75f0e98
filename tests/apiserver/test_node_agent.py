"""The fake node agent is no friend: it fails a pod for every fault in its record, and only then."""

from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.components import OTHER_KUBELET
from hack.controlplane.nodes import mgpu_node
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import Object, binding, share_pod
from tests.apiserver.node_agent import (
    ASSUMED,
    COUNTS,
    FAILURE,
    INDEX,
    NodeAgent,
    RecordError,
    shares_of,
    tended,
)

RECORD = {ASSUMED: "true", f"{INDEX}c": "0"}


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    """A namespace on a control plane without cardquota: the test writes the records itself, by binding."""
    made = Cluster(control_plane, namespace)
    yield made
    made.close()


def a_bound_pod(core: int, record: dict[str, str], memory_mib: int | None = None) -> Object:
    pod = share_pod("p", core, memory_mib, nodeName="n")
    pod["metadata"]["annotations"] = record
    return pod


@pytest.mark.parametrize(
    ("pod", "fault"),
    [
        (a_bound_pod(100, {}), "assumed is None"),
        (a_bound_pod(100, {**RECORD, ASSUMED: "false"}), "assumed is 'false'"),
        (a_bound_pod(100, {ASSUMED: "true"}), "the record is None"),
        (a_bound_pod(100, {**RECORD, f"{INDEX}c": "x"}), "the record is 'x'"),
        (a_bound_pod(100, {**RECORD, f"{INDEX}c": "0,1"}), "names 2 cards, not 1"),
        (a_bound_pod(200, {**RECORD, f"{INDEX}c": "1,1"}), "not 2"),
        (a_bound_pod(60, {**RECORD, COUNTS: "2"}, 4096), "names 1 cards, not 2"),
        (a_bound_pod(100, {**RECORD, f"{INDEX}c": "2"}), "beyond 1"),
    ],
)
def test_a_record_that_does_not_add_up_is_an_error(pod: Object, fault: str) -> None:
    with pytest.raises(RecordError, match=fault):
        shares_of(pod, cards=2)


def test_a_record_is_shared_out_over_its_cards() -> None:
    found = shares_of(a_bound_pod(60, {**RECORD, COUNTS: "2", f"{INDEX}c": "0,1"}, 4096), cards=2)
    assert [(share.card, share.core, share.memory) for share in found] == [(0, 30, 2048), (1, 30, 2048)]


def test_pods_start_or_fail_by_what_their_record_says_when_they_arrive(cluster: Cluster) -> None:
    node = mgpu_node(unique("mgpu"), cards=1)
    name = node["metadata"]["name"]
    cluster.add_nodes(node)
    pods = ["good", "bare", "greedy", "late", "after"]
    cluster.create(*[tended(share_pod(pod, 60, 1024, schedulerName="nobody")) for pod in pods])

    def ends(pod: str) -> str:
        return str(wait_for(f"{pod} has started or failed", lambda: phase(pod) != "Pending" and phase(pod)))

    def phase(pod: str) -> str:
        return str(cluster.pod(pod)["status"]["phase"])

    with NodeAgent(cluster.plane, cluster.path(), [node]) as agent:
        for pod, record in (("good", RECORD), ("bare", {}), ("greedy", RECORD)):
            cluster.bind(binding(pod, name, annotations=record)).expect(201)
        assert [ends(pod) for pod in ("good", "bare", "greedy")] == ["Running", "Failed", "Failed"]
        assert cluster.pod("bare")["status"]["reason"] == FAILURE
        assert set(agent.failed) == {"bare", "greedy"}
        assert "would have core 120" in agent.failed["greedy"]
        cluster.api.delete(cluster.path("good")).expect()
        wait_for("good is gone", lambda: "good" not in cluster.pods())
        cluster.bind(binding("after", name, annotations=RECORD)).expect(201)
        assert ends("after") == "Running"
        assert (agent.admitted, agent.complaints) == (2, [])
        patch = {"metadata": {"annotations": {f"{INDEX}c": "7"}}}
        # The API server enforces the policies of an installation for a moment after it is gone.
        wait_for(
            "a record may be edited", lambda: cluster.api.patch(cluster.path("after"), patch).status == 200
        )
        agent.catch_up()
        assert len(agent.complaints) == 1
        assert OTHER_KUBELET in cluster.pod("late")["metadata"]["annotations"]
