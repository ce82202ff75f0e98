"""What changes nothing that is decided by costs no more than to be read: counted, not timed."""

from collections import Counter
from typing import Any

import pytest

from controller.caches import Caches
from core.queues.ledger import Ledger
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.controller.cluster import caches, show

A = "NVIDIA-A"


def shown(cluster: Caches, pod: PodBuilder, version: int, **status: Any) -> None:
    """The watch shows a state of the pod."""
    raw = pod.build()
    raw["metadata"]["resourceVersion"] = str(version)
    raw["status"] = raw.get("status", {}) | status
    view = cluster.project_pod(raw)
    show(cluster.pods, view.key, view)


def running(name: str) -> PodBuilder:
    return a_pod(name).card(A).gpu(1).in_queue("q").assigned({A: 1}).bound_to("n")


@pytest.fixture
def cluster() -> Caches:
    result = caches([a_node("n").card(A, 8).view()])
    show(result.queues, "q", a_queue("q").cards({A: 8}).view())
    return result


@pytest.fixture
def booked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pod was put into the books."""
    counts: Counter[str] = Counter()
    put = Ledger.put_pod

    def counting(self: Ledger, pod: Any) -> None:
        counts[pod.name] += 1
        put(self, pod)

    monkeypatch.setattr(Ledger, "put_pod", counting)
    return counts


def test_what_a_kubelet_writes_of_a_pod_that_runs_is_not_booked(
    cluster: Caches, booked: Counter[str]
) -> None:
    """Conditions, addresses, restarts: a hundred states, one entry; nobody is woken, and the version is the last one."""
    signal = cluster.signal()
    for number in range(100):
        if number == 1:
            signal.clear()
        conditions = [{"type": "Ready", "status": "True", "lastProbeTime": str(number)}]
        shown(cluster, running("p"), number, conditions=conditions, podIP=f"10.0.0.{number}")
    view = cluster.pods.get("ml/p")
    assert (booked["p"], signal.is_set()) == (1, False)
    assert view is not None
    assert view.resource_version == "99"


@pytest.mark.parametrize(
    "change",
    [{"phase": "Succeeded"}, {"containerStatuses": [{"name": "main", "state": {"terminated": {}}}]}],
    ids=["it has ended", "it has started"],
)
def test_what_is_decided_by_is_booked(cluster: Caches, booked: Counter[str], change: dict[str, Any]) -> None:
    shown(cluster, running("p"), 1)
    shown(cluster, running("p"), 2, **change)
    assert booked["p"] == 2


def test_each_state_of_a_pod_that_waits_is_booked(cluster: Caches, booked: Counter[str]) -> None:
    """A lift names the version of the pod, so an older one could not be stored."""
    waiting = a_pod("p").card(A).gpu(1).in_queue("q").gated()
    for number in range(5):
        shown(cluster, waiting, number)
    observed = cluster.ledger.observed(waiting.view().uid)
    assert booked["p"] == 5
    assert observed is not None
    assert observed.resource_version == "4"
