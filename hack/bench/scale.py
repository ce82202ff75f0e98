"""A large cluster on a real API server: what a leader's start costs there, and what one change costs afterwards.

Only etcd and the API server run: the pods are created on their nodes, and nothing runs on them.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hack.bench import samples
from hack.bench.clock import cpu_s_of, resident_mib
from hack.bench.effort import FULL, Effort
from hack.bench.installed import errors_told, events_of, pid_of, put, told
from hack.bench.pages import PAGE
from hack.bench.peers import BenchError
from hack.bench.report import Row, Sheet, Target
from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.install import Installation
from tests.builders.objects import PodBuilder

_QUEUES: Final = 500
_OF_A_QUEUE: Final = 5
"""Of the pods of a queue so many to one: the one waits, the others have cards and use up the quota."""
_CARD_PODS: Final = 0.25
_CREATORS: Final = 8
_CHANGES: Final = 20
_IDLE_S: Final = 30.0
_NAMESPACE: Final = samples.NAMESPACE
_STARTED: Final = Target("figure", "<", 45)
_RESIDENT: Final = Target("figure", "<", 700)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much there is; pods that ask for nothing are the rest."""

    pods: int
    nodes: int
    queues: int

    @property
    def with_cards(self) -> int:
        """Pods that have a card, as many for each queue."""
        return self.waiting * (_OF_A_QUEUE - 1)

    @property
    def waiting(self) -> int:
        """Pods that wait for one, as many for each queue."""
        return int(self.pods * _CARD_PODS / _OF_A_QUEUE) // self.queues * self.queues


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, in seconds and MiB; `shown_s` is from the start until each Queue's status is right."""

    read_s: float
    led_s: float
    cpu_s: float
    shown_s: float
    memory_mib: float
    lift_s: float
    trip_s: float
    idle_cpu_s: float


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """Fills an API server, starts a controller over it, and frees cards one by one."""
    scale = Scale(effort.pods, effort.pod_nodes, max(1, round(_QUEUES * effort.pods / FULL.pods)))
    with (
        errors_told(),
        ControlPlane(scheduler=False, controller_manager=False, kwok=False, progress=progress) as plane,
    ):
        with Installation(plane, controller=0, webhook=0):
            pass  # leaves the definition of Queue behind
        _fill(plane, scale, progress)
        read_s = _reading_s(plane)
        with Installation(plane, webhook=0, progress=progress) as installed:
            seen = _led(plane, installed.controller_processes[0], scale, read_s, progress)
    return rows(scale, seen)


def rows(scale: Scale, seen: Seen) -> list[Row]:
    """What it took, beside what nobody can do without."""
    before = f"{scale.pods:,} pods, {scale.nodes:,} nodes, {scale.queues} queues: "
    row = Sheet("scale", scale.pods >= FULL.pods, before).row
    pages = (
        f"reading the same pages from the same API server, {PAGE} pods each, without making anything of them"
    )
    trip = "reading a pod and writing it, one after the other"
    return [
        row("from a controller's start until it decides", "s", seen.led_s, seen.read_s, pages, _STARTED),
        row("until each Queue shows its use", "s", seen.shown_s, seen.read_s, pages),
        row("processor time until then", "s", seen.cpu_s, seen.read_s, pages),
        row("a card freed: until the next pod is let in", "ms", seen.lift_s * 1000, seen.trip_s * 1000, trip),
        row("resident memory", "MiB", seen.memory_mib, 0, "none", _RESIDENT),
        row("processor time in a second when nothing happens", "ms", seen.idle_cpu_s * 1000, 0, "none"),
    ]


def made(scale: Scale) -> Iterator[PodBuilder]:
    """The pods: for each queue those that were let in and use up its quota, those that wait, and all others."""
    taken = [0] * len(samples.PRODUCTS)
    for number in range(scale.with_cards):
        queue = number % scale.queues
        kind = queue % len(taken)
        node = taken[kind] // samples.CARDS_PER_NODE * len(taken) + kind
        taken[kind] += 1
        pod = _card_pod(_numbered("card", number), queue).bound_to(f"n{node}")
        yield pod.assigned({samples.product(queue): 1}).charged(f"q{queue}")
    for number in range(scale.waiting):
        yield _card_pod(_numbered("waiting", number), number % scale.queues).gated()
    for number in range(scale.pods - scale.with_cards - scale.waiting):
        yield samples.web_pod(_numbered("web", number), f"n{number % scale.nodes}")


def _numbered(kind: str, number: int) -> str:
    """A name; of pods that were created in one second the order of their names is that of their numbers."""
    return f"{kind}-{number:06}"


def _card_pod(name: str, queue: int) -> PodBuilder:
    return samples.training_pod(name).card(samples.product(queue)).in_queue(f"q{queue}")


# -- on the API server -------------------------------------------------------------------------------------------


def _fill(plane: ControlPlane, scale: Scale, progress: Callable[[str], None]) -> None:
    plane.create_namespace(_NAMESPACE)
    quota = scale.with_cards // scale.queues
    for number in range(scale.queues):
        plane.api.create(samples.queue(number, {samples.product(number): quota}).build()).expect()
    started = time.monotonic()
    with ThreadPoolExecutor(_CREATORS) as creators:
        for number, _ in enumerate(creators.map(lambda n: _create(plane, n), range(scale.nodes)), 1):
            if number % 1000 == 0:
                progress(f"{number:,} nodes created in {time.monotonic() - started:.0f} s")
        for number, _ in enumerate(creators.map(lambda pod: put(plane, pod.build()), made(scale)), 1):
            if number % 5000 == 0:
                progress(f"{number:,} pods created in {time.monotonic() - started:.0f} s")


def _create(plane: ControlPlane, number: int) -> None:
    put(plane, samples.card_node(number).build())


def _pages(plane: ControlPlane, plural: str) -> Iterator[Any]:
    token = ""
    while True:
        page = plane.api.get(
            f"/api/v1/{plural}", limit=str(PAGE), **({"continue": token} if token else {})
        ).expect()
        yield page
        token = page["metadata"].get("continue", "")
        if not token:
            return


def _reading_s(plane: ControlPlane) -> float:
    started = time.monotonic()
    for plural in ("pods", "nodes"):
        for _ in _pages(plane, plural):
            pass
    return time.monotonic() - started


def _led(
    plane: ControlPlane,
    leader: ManagedProcess,
    scale: Scale,
    read_s: float,
    progress: Callable[[str], None],
) -> Seen:
    pid = pid_of(leader)
    wait_for("the leader decides", lambda: since_start(leader.log, "deciding") is not None, 120)
    led_s = since_start(leader.log, "deciding") or 0.0
    progress(f"decides after {led_s:.1f} s")
    wait_for("each Queue shows its use", lambda: _all_shown(plane, scale), 120)
    began, _ = next(told(leader.log))
    shown_s, cpu_s = time.time() - began, cpu_s_of(pid)
    progress(f"each Queue shows its use after {shown_s:.1f} s")
    wait_for("who waits has been told why", lambda: events_of(plane, _NAMESPACE) >= scale.waiting, 600)
    before = cpu_s_of(pid)
    time.sleep(_IDLE_S)
    idle_cpu_s = (cpu_s_of(pid) - before) / _IDLE_S
    lifts = [_freed_s(plane, number) for number in range(_CHANGES)]
    trips = [_trip_s(plane, number) for number in range(_CHANGES)]
    return Seen(
        read_s=read_s,
        led_s=led_s,
        cpu_s=cpu_s,
        shown_s=shown_s,
        memory_mib=resident_mib(pid),
        lift_s=median(lifts),
        trip_s=median(trips),
        idle_cpu_s=idle_cpu_s,
    )


def _all_shown(plane: ControlPlane, scale: Scale) -> bool:
    path = plane.api.path("scheduling.volcano.sh/v1beta1", "Queue")
    queues = plane.api.get(path).expect()["items"]
    return sum(bool(queue.get("status", {}).get("allocated")) for queue in queues) >= scale.queues


def _freed_s(plane: ControlPlane, number: int) -> float:
    """From the answer of a pod's deletion until the pod that waits longest in its queue is seen without its gate."""
    gone, next_one = (
        plane.api.path("v1", "Pod", _NAMESPACE, _numbered(kind, number)) for kind in ("card", "waiting")
    )
    plane.api.delete(gone, gracePeriodSeconds=0).expect()
    started = time.monotonic()
    while plane.api.get(next_one).expect()["spec"].get("schedulingGates"):
        if time.monotonic() - started > 30:
            raise BenchError(f"{_numbered('waiting', number)} was not let in within 30 s")
    return time.monotonic() - started


def _trip_s(plane: ControlPlane, number: int) -> float:
    path = plane.api.path("v1", "Pod", _NAMESPACE, _numbered("web", number))
    started = time.monotonic()
    plane.api.get(path).expect()
    plane.api.patch(path, {"metadata": {"labels": {"touched": "yes"}}}).expect()
    return time.monotonic() - started


def since_start(log: Path, message: str) -> float | None:
    """Seconds from the first line of a log to the first one with this message; None while there is none."""
    began: float | None = None
    for at, entry in told(log):
        began = at if began is None else began
        if entry.get("message") == message:
            return at - began
    return None
