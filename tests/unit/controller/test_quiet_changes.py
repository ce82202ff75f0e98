"""What changes nothing that is decided by costs no more than to be read: counted, not timed."""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.metrics import Metrics
from core.queues.ledger import Ledger
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

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
    wakeups, told = cluster.ledger.wakeups, [0]
    wakeups.follow_queues(partial(told.append, 1))
    wakeups.follow_figures(partial(told.append, 2))
    for number in range(100):
        if number == 1:
            wakeups.take_queues()
            wakeups.take_figures()
            told.clear()
        conditions = [{"type": "Ready", "status": "True", "lastProbeTime": str(number)}]
        shown(cluster, running("p"), number, conditions=conditions, podIP=f"10.0.0.{number}")
    view = cluster.pods.get("ml/p")
    assert (booked["p"], told) == (1, [])
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


async def test_what_helps_nobody_begins_no_pass(cluster: Caches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods are bound, start and run all the time; what comes free has those looked at who wait for it."""
    passes, settled = 0, Caches.settled

    async def counting(self: Caches) -> None:
        nonlocal passes
        passes += 1
        await settled(self)

    monkeypatch.setattr(Caches, "settled", counting)
    metrics = Metrics(CollectorRegistry())
    lifter = Lifter(Writer(), cluster, Announcements(Recorder()), metrics)
    async with background(lifter.run(term())):
        await asyncio.sleep(1)
        assert passes == 1
        for number, phase in enumerate(("Pending", "Running"), 1):
            shown(cluster, running("p").phase(phase), number)
            await asyncio.sleep(1)
        assert passes == 1
        shown(cluster, a_pod("w").card(A).gpu(9).in_queue("q").gated(), 3)
        await asyncio.sleep(1)
        assert passes == 2
        shown(cluster, running("p").phase("Succeeded"), 4)
        await asyncio.sleep(1)
        assert passes == 3


def test_a_pod_that_runs_now_leaves_its_node_and_its_queue_as_they_were(cluster: Caches) -> None:
    """What has been found out about either still holds; the books have the pod as it is."""
    ledger = cluster.ledger
    shown(cluster, running("p").phase("Pending"), 1)
    ledger.wakeups.take_figures()
    ledger.wakeups.take_queues()
    before = ledger.occupants.version("n")
    shown(cluster, running("p"), 2)
    entry = ledger.entry("uid-ml-p")
    assert entry is not None
    assert (entry.pod.phase, entry.pod.resource_version) == ("Running", "2")
    assert ledger.occupants.version("n") == before
    assert (ledger.wakeups.take_figures(), ledger.wakeups.take_queues()) == (set(), [])
