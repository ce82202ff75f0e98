"""A cluster to ask about, and requests as schedulers send them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core.crossquota.book import guest_book
from core.extender import kube, volcano
from core.extender.cluster import Cluster
from core.objects import Group, Node, Pod, Queue
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders.objects import a_pod
from tests.builders.pods import PodBuilder
from tests.unit.core.crossquota.ruling import ruled

DATA = Path(__file__).parents[3] / "data" / "extender"
LIMITED = ruled(quotaResources=["cpu", "memory"], quota={"cpu": "32", "memory": "64Gi"})


def recorded(name: str) -> Any:
    """A request as a scheduler sent it."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def books(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    queues: Iterable[Queue] = (),
    groups: Iterable[Group] = (),
    settings: Settings = LIMITED,
) -> Ledger:
    """A ledger that has seen these objects."""
    ledger = Ledger(settings)
    for node in nodes:
        ledger.put_node(node)
    for queue in queues:
        ledger.put_queue(queue)
    for group in groups:
        ledger.put_group(group)
    for pod in pods:
        ledger.put_pod(pod)
    return ledger


def cluster(nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), settings: Settings = LIMITED) -> Cluster:
    """The cluster of these objects."""
    nodes, pods = tuple(nodes), tuple(pods)
    return Cluster(books(nodes, pods, settings=settings), guest_book(nodes, pods, settings))


def cpu_pod(name: str = "p", *, cpu: int | str = 4, memory: str = "8Gi") -> PodBuilder:
    return a_pod(name).request("cpu", cpu).request("memory", memory)


# -- kube-scheduler -------------------------------------------------------------------------------------------------


def by_name(pod: PodBuilder, *names: str) -> dict[str, Any]:
    """A request with the names of nodes."""
    return {"Pod": pod.build(), "Nodes": None, "NodeNames": list(names)}


def by_node(pod: PodBuilder, *nodes: Mapping[str, Any]) -> dict[str, Any]:
    """A request with whole nodes."""
    return {"Pod": pod.build(), "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}


def filtered(body: Any, asked: Cluster) -> dict[str, Any]:
    request = kube.request_of(body)
    return finish(kube.filter_answer(request, finish(kube.verdicts(request, asked))))


def prioritized(body: Any, asked: Cluster) -> dict[str, int]:
    """Node -> score; every entry must have exactly the two keys, and a whole number."""
    found = finish(kube.scored(kube.request_of(body), asked))
    assert all(set(entry) == {"Host", "Score"} and type(entry["Score"]) is int for entry in found)
    return {entry["Host"]: entry["Score"] for entry in found}


# -- Volcano --------------------------------------------------------------------------------------------------------

PENDING, ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING, RELEASING, SUCCEEDED, FAILED, UNKNOWN = (
    1 << bit for bit in range(10)
)


def resreq(cpu: float = 0, memory: float = 0, **scalars: float) -> dict[str, Any]:
    """Amounts in Volcano's units; `__` in a name stands for what Python does not allow there."""
    return {"MilliCPU": cpu, "Memory": memory, "ScalarResources": scalars or None, "MaxTaskNum": 0}


def task(
    pod: PodBuilder, *, status: int = PENDING, amounts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A task; without amounts they are to be counted from the pod."""
    raw = pod.build()
    metadata = raw["metadata"]
    return {
        "UID": metadata["uid"],
        "Name": metadata["name"],
        "Namespace": metadata["namespace"],
        "Resreq": amounts,
        "Status": status,
        "Pod": raw,
    }


def session_node(node: Mapping[str, Any], *tasks: Mapping[str, Any]) -> dict[str, Any]:
    """A node of a session with its tasks."""
    keyed = {f"{entry['Namespace']}/{entry['Name']}": entry for entry in tasks}
    return {"Name": node["metadata"]["name"], "Node": dict(node), "Tasks": keyed}


def predicated(
    asking: Mapping[str, Any], node: Mapping[str, Any], asked: Cluster | None = None
) -> dict[str, Any]:
    body = {"task": asking, "node": node}
    return volcano.predicate_answer(finish(volcano.predicate(body, asked or cluster())))


def scored(asking: Mapping[str, Any], *nodes: Any, asked: Cluster | None = None) -> Any:
    body = {"task": asking, "nodes": list(nodes)}
    return volcano.prioritize_answer(finish(volcano.scored(body, asked or cluster())))
