"""What schedulers wait for: all nodes of a large cluster filtered and scored for one pod, and one predicate under load."""

from collections.abc import Callable, Iterable
from itertools import count
from random import Random
from typing import Any, Final

import orjson

from controller.extender import VOLCANO_PREDICATE
from core import names
from core.crossquota.book import guest_book
from core.extender import kube
from core.extender.cluster import Cluster
from core.objects import Node, Pod
from core.queues.ledger import Ledger
from core.settings import parse
from core.steps import finish
from hack.bench import samples, servers
from hack.bench.admission import compared
from hack.bench.clock import cpu_ms, in_turns, settled
from hack.bench.effort import FULL, Effort
from hack.bench.report import Row, Target
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder

Json = dict[str, Any]

_PASSES: Final = '"code":0'
_SETTINGS: Final = parse({"gpu-resource-names": "nvidia.com/gpu", "quota-resources": "cpu,memory"})[0]
_FLOOR: Final = "a loop over the same names with one lookup in a dictionary and one comparison for each"
_GUESTS: Final = 4
"""Pods without GPU on each node, of sizes that differ from node to node."""
_SHARES: Final = 2
_TASKS: Final = 20


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """Filter and prioritize by names, for a pod without GPU and for one with shares; then predicate over HTTP."""
    nodes = effort.share_nodes
    rows: list[Row] = []
    with settled():
        for what, ask in (("CPU pod", _cpu_pod), ("mGPU pod", _share_pod)):
            progress(f"{what} on {nodes} nodes")
            cluster = _cluster(nodes)
            rows += [
                _row(f"filter, {what}, {nodes:,} nodes by name", cluster, ask, _filtered, effort),
                _row(f"prioritize, {what}, {nodes:,} nodes by name", cluster, ask, _prioritized, effort),
            ]
    body = predicate()
    what = f"predicate, {len(body) / 1000:.0f} KB"
    # Judging twenty tasks takes longer than sending their pods back unread; only the tail has a target.
    rows += compared(
        "extender",
        what,
        servers.EXTENDER,
        VOLCANO_PREDICATE,
        body,
        effort,
        progress,
        expect=_PASSES,
        throughput=None,
    )
    return rows


def _row(
    what: str,
    cluster: Cluster,
    ask: Callable[[int], PodBuilder],
    answer: Callable[[object, Cluster], object],
    effort: Effort,
) -> Row:
    listed = list(cluster.ledger.nodes)
    rounds = count()

    def figure() -> float:
        # A pod of another size each time, so that nothing is remembered from the round before.
        body = {"Pod": ask(next(rounds)).build(), "NodeNames": listed}
        return cpu_ms(lambda: orjson.dumps(answer(body, cluster)))

    def floor() -> float:
        known = cluster.ledger.nodes
        return cpu_ms(lambda: [known[name].allocatable["cpu"] > 1000 for name in listed])

    found = in_turns(figure, floor, rounds=effort.rounds, limit_s=effort.limit_s)
    return Row(
        benchmark="extender",
        what=what,
        figure=found.figure,
        floor=found.floor,
        ratio=found.ratio,
        unit="ms",
        floor_is=_FLOOR,
        target=Target("figure", "<", 200) if effort.share_nodes >= FULL.share_nodes else None,
    )


def _filtered(body: object, cluster: Cluster) -> object:
    asked = kube.request_of(body)
    return finish(kube.filter_answer(asked, finish(kube.verdicts(asked, cluster))))


def _prioritized(body: object, cluster: Cluster) -> object:
    return finish(kube.scored(kube.request_of(body), cluster))


def _cluster(count_of_nodes: int) -> Cluster:
    """Nodes with GPUs and shares; on each some pods without GPU, and some that hold shares."""
    random = Random(1)
    nodes = [_node(number) for number in range(count_of_nodes)]
    pods = [pod for node in nodes for pod in _pods_on(node, random)]
    ledger = Ledger(_SETTINGS)
    for node in nodes:
        ledger.put_node(node)
    for pod in pods:
        ledger.put_pod(pod)
    return Cluster(ledger, guest_book(nodes, pods, _SETTINGS))


def _node(number: int) -> Node:
    node = a_node(f"n{number}").allocatable("cpu", 128).allocatable("memory", "1Ti")
    return node.allocatable("nvidia.com/gpu", 8).mgpu(8, memory=81920).view()


def _pods_on(node: Node, random: Random) -> Iterable[Pod]:
    for number in range(_GUESTS):
        cpu, memory = random.randint(100, 20_000), random.randint(1, 200)
        pod = a_pod(f"{node.name}-{number}").request("cpu", f"{cpu}m").request("memory", f"{memory}Gi")
        yield pod.bound_to(node.name).view()
    for number in range(_SHARES):
        pod = (
            a_pod(f"{node.name}-s{number}")
            .mgpu("c", core=random.choice((20, 40, 60)), memory=20_000)
            .only("c")
        )
        record = str(random.randrange(8))
        yield pod.bound_to(node.name).annotation(names.GPU_INDEX_PREFIX + "c", record).view()


def _cpu_pod(number: int) -> PodBuilder:
    return a_pod("asking").request("cpu", f"{60_000 + number}m").request("memory", "100Gi")


def _share_pod(number: int) -> PodBuilder:
    pod = a_pod("asking").mgpu("c", core=50, memory=30_000 + number).only("c")
    return pod.request("cpu", 8, container="c")


def predicate() -> bytes:
    """One of Volcano's questions: a pod without GPU, and a node with as many tasks as nodes have."""
    tasks = [_task(samples.web_pod(f"web-{number}", "n1"), 32) for number in range(_TASKS)]
    node = samples.card_node(1).allocatable("memory", "1Ti").build()
    session = {"Name": "n1", "Node": node, "Tasks": {f"ml/{task['Name']}": task for task in tasks}}
    return orjson.dumps({"task": _task(samples.web_pod("asking"), 1), "node": session})


def _task(pod: PodBuilder, status: int) -> Json:
    raw = pod.build()
    metadata = raw["metadata"]
    amounts = {"MilliCPU": 500.0, "Memory": 2.0**30, "ScalarResources": {"pods": 1}, "MaxTaskNum": 0}
    named = {"UID": metadata["uid"], "Name": metadata["name"], "Namespace": metadata["namespace"]}
    return {**named, "Resreq": amounts, "InitResreq": amounts, "Status": status, "NodeName": "n1", "Pod": raw}
