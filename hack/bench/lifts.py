"""Pods that wait are all given quota at once: how many a leader lets in each second on a real API server.

Only etcd and the API server run beside it: nothing but the lifts and what a leader writes with them is measured.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from hack.bench import samples
from hack.bench.clock import cpu_s_of
from hack.bench.cohort import lifts
from hack.bench.effort import FULL, Effort
from hack.bench.installed import errors_told, events_of, pid_of, put
from hack.bench.report import Row, Sheet, Target
from hack.bench.stage import sized
from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.install import Installation
from tests.builders.objects import PodBuilder

_PODS: Final = 3000
_QUEUES: Final = 10
_CLIENTS: Final = 8
_NAMESPACE: Final = samples.NAMESPACE
_OTHER_GATE: Final = "bench.example.com/gate"
_PER_S: Final = Target("figure", ">=", 150)


@dataclass(frozen=True, slots=True)
class Seen:
    """Seconds from the quota's change to the last lift, of the bare patches, and of the leader's processor time."""

    pods: int
    lifted_s: float
    bare_s: float
    cpu_s: float


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """Fills an API server with pods at the gate, has a leader follow them, and gives them quota."""
    pods = sized(_PODS, effort.share, least=_QUEUES)
    with (
        errors_told(),
        ControlPlane(scheduler=False, controller_manager=False, kwok=False, progress=progress) as plane,
        Installation(plane, webhook=0, progress=progress) as installed,
    ):
        _fill(plane, pods)
        progress(f"{pods:,} pods created")
        seen = _measured(plane, installed.controller_processes[0], pods)
    return rows(seen, effort.share)


def rows(seen: Seen, share: float) -> list[Row]:
    """What it took, beside a client that decides nothing."""
    row = Sheet("lifts", share >= FULL.share, f"{seen.pods:,} pods of {_QUEUES} queues: ").row
    bare = (
        f"one JSON patch that takes a gate away, of as many pods, by {_CLIENTS} clients that decide nothing"
    )
    each = 1000 / seen.pods
    return [
        row("let in each second", "/s", seen.pods / seen.lifted_s, seen.pods / seen.bare_s, bare, _PER_S),
        row("leader's processor time for each", "ms", seen.cpu_s * each, 0, "none"),
    ]


def made(pods: int) -> Iterator[PodBuilder]:
    """Pods that wait for quota, and as many with the gate of somebody else."""
    for number in range(pods):
        queue = number % _QUEUES
        yield (
            samples.training_pod(f"waiting-{number}")
            .card(samples.product(queue))
            .in_queue(f"q{queue}")
            .gated()
        )
    for number in range(pods):
        yield samples.web_pod(_bare(number)).put("spec", "schedulingGates", value=[{"name": _OTHER_GATE}])


def _bare(number: int) -> str:
    return f"bare-{number}"


# -- on the API server -------------------------------------------------------------------------------------------


def _fill(plane: ControlPlane, pods: int) -> None:
    plane.create_namespace(_NAMESPACE)
    for number in range(len(samples.PRODUCTS)):
        # A queue that names no CPU and memory may use those of the cluster, and cards alone are to be waited for.
        roomy = samples.card_node(number).allocatable("cpu", pods * 128).allocatable("memory", f"{pods}Ti")
        put(plane, roomy.build())
    for number in range(_QUEUES):
        plane.api.create(samples.queue(number, {samples.product(number): 0}).build()).expect()
    with ThreadPoolExecutor(_CLIENTS) as clients:
        for _ in clients.map(lambda pod: put(plane, pod.build()), made(pods)):
            pass


def _measured(plane: ControlPlane, leader: ManagedProcess, pods: int) -> Seen:
    wait_for("who waits has been told why", lambda: events_of(plane, _NAMESPACE) >= pods, 600)
    bare_s = _bare_s(plane, pods)
    before_s, started = cpu_s_of(pid_of(leader)), time.time()
    for number in range(_QUEUES):
        queue = samples.queue(number, {samples.product(number): pods}).build()
        annotations: Mapping[str, Any] = {"metadata": {"annotations": queue["metadata"]["annotations"]}}
        plane.api.patch(plane.api.path_of(queue), annotations).expect()
    wait_for("all are let in", lambda: len(dict(lifts(leader.log))) >= pods, 300)
    last = max(at for _, at in lifts(leader.log))
    return Seen(pods, last - started, bare_s, cpu_s_of(pid_of(leader)) - before_s)


def _bare_s(plane: ControlPlane, pods: int) -> float:
    ungated = [
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": _OTHER_GATE},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]

    def patch(number: int) -> None:
        plane.api.patch(plane.api.path("v1", "Pod", _NAMESPACE, _bare(number)), ungated, "json").expect()

    started = time.time()
    with ThreadPoolExecutor(_CLIENTS) as clients:
        for _ in clients.map(patch, range(pods)):
            pass
    return time.time() - started
