"""Cohorts as Kueue publishes them, from end to end: real pods on a real control plane, and what our processes spend on each.

With the environment variable `COHORT_PROFILE` the file of that name tells where the leader's processor time went.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

import orjson

from core import names
from hack.bench.clock import cpu_s_of, machine_cpu_s, resident_mib
from hack.bench.effort import Effort
from hack.bench.installed import errors_told, pid_of, spent_s, told
from hack.bench.report import Row, Sheet, Target
from hack.bench.shape import CLASSES, COHORTS, QUEUES, QUOTA, Birth, Class, births, ideal
from hack.controlplane import ControlPlane, ManagedProcess, audit, wait_for
from hack.controlplane.components import COMPLETE_AFTER
from hack.controlplane.nodes import gpu_node
from hack.install import Installation

CARD: Final = "NVIDIA-H200"

WALL: Final = Target("figure", "<=", 80)
"""Seconds that one cohort may take, where its load over its quota takes 66 s."""
_LEADER: Final = Target("figure", "<=", 5)
_WRITES: Final = Target("figure", "<=", 2)

_NODES: Final = 5
"""For each cohort."""
_CARDS: Final = 40
"""On each node: 20 cards in one pod, and room is never what they wait for."""
_NAMESPACE: Final = "cohort"
_CREATORS: Final = 8
_PROFILE: Final = os.environ.get("COHORT_PROFILE", "")
_STORED: Final = 5
"""A pod is stored when it is created, lifted, bound, started and finished: so often it has to be read at least."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one process used: processor time meanwhile, and its resident memory at the end."""

    cpu_s: float
    memory_mib: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen: `admitted_s` is the mean time from creation to lift by class, the rest counts."""

    pods: int
    wall_s: float
    leader: Spent
    webhook: Spent
    machine_cpu_s: float
    programs_cpu_s: Mapping[str, float]
    read_s: float
    events: int
    patches: int
    requests: Mapping[str, int]
    admitted_s: Mapping[str, float]


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """One cohort: creates the pods of all queues, and waits for the last to finish."""
    return _run("cohort", 1, effort, progress)


def run_all(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """All cohorts at once."""
    return _run("cohorts", COHORTS, effort, progress)


def _run(name: str, cohorts: int, effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    born = births(effort.share, cohorts)
    with (
        errors_told(),
        ControlPlane(progress=progress) as plane,
        Installation(plane, progress=progress) as installed,
    ):
        seen = _played(plane, installed, born, cohorts, progress)
    progress(f"requests of the controller: {dict(seen.requests)}")
    return rows(name, seen, ideal(born), effort.share, wall=WALL if cohorts == 1 else None)


def rows(
    benchmark: str,
    seen: Seen,
    best: tuple[float, Mapping[str, float]],
    share: float,
    *,
    wall: Target | None = WALL,
) -> list[Row]:
    """What it took, beside the least that it could have taken. `wall` is the target of the whole."""
    row = Sheet(benchmark, share >= 1, f"{seen.pods:,} pods: ").row
    nothing = "were nothing but quota to be waited for"
    read = f"orjson reading each pod {_STORED} times, as often as it is stored at least"
    once = "each pod is lifted by one patch"

    end_s, waits = best
    each = 1000 / seen.pods
    ours_s = seen.leader.cpu_s + seen.webhook.cpu_s
    return [
        row("from the first to the end of the last", "s", seen.wall_s, end_s, nothing, wall),
        row(
            "lifted in a second, over all that time",
            "/s",
            seen.pods / seen.wall_s,
            seen.pods / end_s,
            nothing,
        ),
        *(
            row(f"{name}: mean time to admission", "s", seen.admitted_s.get(name, 0.0), waits[name], nothing)
            for name in waits
        ),
        row(
            "leader's processor time for each",
            "ms",
            seen.leader.cpu_s * each,
            seen.read_s * each,
            read,
            _LEADER,
        ),
        row("webhook's processor time for each", "ms", seen.webhook.cpu_s * each, seen.read_s * each, read),
        row(
            "processor time of all programs of the machine for each",
            "ms",
            seen.machine_cpu_s * each,
            ours_s * each,
            "what of it is ours",
        ),
        *(
            row(f"processor time of {name} for each", "ms", spent * each, ours_s * each, "what ours use")
            for name, spent in seen.programs_cpu_s.items()
        ),
        row(
            "part of the machine's processors in use",
            "",
            seen.machine_cpu_s / seen.wall_s / (os.cpu_count() or 1),
            ours_s / seen.wall_s / (os.cpu_count() or 1),
            "what of it is ours",
        ),
        row("patches of pods for each", "", seen.patches / seen.pods, 1, once, _WRITES),
        row("events for each", "", seen.events / seen.pods, 0, "none", _WRITES),
        row("resident memory of the leader", "MiB", seen.leader.memory_mib, 0, "none"),
        row("resident memory of the webhook", "MiB", seen.webhook.memory_mib, 0, "none"),
    ]


# -- on the control plane ----------------------------------------------------------------------------------------


def _played(
    plane: ControlPlane,
    installed: Installation,
    born: list[Birth],
    cohorts: int,
    progress: Callable[[str], None],
) -> Seen:
    (leader,), (webhook,) = installed.controller_processes, installed.webhook_processes
    plane.add_nodes(
        *(
            gpu_node(f"n{number}", product=CARD, cards=_CARDS, memory_mib=143771)
            for number in range(cohorts * _NODES)
        )
    )
    plane.create_namespace(_NAMESPACE)
    for number in range(cohorts * QUEUES):
        plane.api.create(_queue(number)).expect()
    for kind in CLASSES:
        plane.api.create(_priority(kind)).expect()
    if _PROFILE:
        _run_profiled(leader)
    with ThreadPoolExecutor(1) as warming:
        # One pod first, so that starting up and being elected are over.
        warming.submit(plane.api.create, _pod(Birth(0, 0, 0, -1))).result().expect()
    wait_for("a first pod has run", lambda: _unfinished(plane) == 0, 60)
    offset = plane.audit_log.stat().st_size
    before = [_spent(process).cpu_s for process in (leader, webhook)]
    machine_before_s, programs_before_s = machine_cpu_s(), spent_s(plane)
    started = time.time()
    created = _created(plane, born, started)
    progress(f"{len(born)} pods created in {time.time() - started:.0f} s")
    wait_for("all pods have finished", lambda: _unfinished(plane) == 0, cohorts * 600)
    wall_s = time.time() - started
    machine_s, programs_s = machine_cpu_s() - machine_before_s, spent_s(plane)
    leading, reviewing = (
        _spent(process, since) for process, since in zip((leader, webhook), before, strict=True)
    )
    text = orjson.dumps(plane.api.get(_path(plane, born[-1].name)).expect())
    if _PROFILE:
        leader.stop(30.0)
    requests = _requests(plane, installed, offset)
    return Seen(
        pods=len(born),
        wall_s=wall_s,
        leader=leading,
        webhook=reviewing,
        machine_cpu_s=machine_s,
        programs_cpu_s={
            name: spent - programs_before_s[name]
            for name, spent in programs_s.items()
            if name not in {leader.name, webhook.name}
        },
        read_s=_reading_s(text, _STORED * len(born)),
        events=requests["create events"] + requests["patch events"],
        patches=requests["patch pods"],
        requests=requests,
        admitted_s=_admitted_s(leader, born, created),
    )


def _created(plane: ControlPlane, born: list[Birth], started: float) -> dict[str, float]:
    """Creates each pod when it is due, or as soon as the API server lets it; when each was there, by name."""

    def create(birth: Birth) -> tuple[str, float]:
        time.sleep(max(0.0, started + birth.at_s - time.time()))
        plane.api.create(_pod(birth)).expect(201)
        return birth.name, time.time()

    with ThreadPoolExecutor(_CREATORS) as creators:
        return dict(creators.map(create, born))


def _pod(birth: Birth) -> dict[str, Any]:
    kind = birth.kind
    annotations = {
        names.CARD_NAME_ANNOTATION: CARD,
        names.QUEUE_NAME_ANNOTATION: f"cohort-{birth.queue}",
        COMPLETE_AFTER: f"{kind.runs_s * 1000:.0f}ms",
    }
    resources = {"limits": {"nvidia.com/gpu": str(kind.cards)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": birth.name, "namespace": _NAMESPACE, "annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "priorityClassName": kind.name,
            "containers": [{"name": "main", "image": "none", "resources": resources}],
        },
    }


def _priority(kind: Class) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": kind.name},
        "value": kind.priority,
    }


def _queue(number: int) -> dict[str, Any]:
    quota = orjson.dumps({CARD: QUOTA}).decode()
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": f"cohort-{number}", "annotations": {names.CARD_QUOTA_ANNOTATION: quota}},
        "spec": {"weight": 1, "dequeueStrategy": "fifo"},
    }


def _path(plane: ControlPlane, name: str | None = None) -> str:
    return plane.api.path("v1", "Pod", _NAMESPACE, name)


def _unfinished(plane: ControlPlane) -> int:
    """Whether any pod has not come to its end: 0 or 1."""
    listed = plane.api.get(_path(plane), fieldSelector="status.phase!=Succeeded", limit="1").expect()
    return len(listed["items"])


def _run_profiled(leader: ManagedProcess) -> None:
    """Starts the leader again, watched from within."""
    leader.stop(30.0)
    program, _module, _cli, *arguments = leader.argv
    leader.argv = (program, "-m", "hack.bench.sampled", str(Path(_PROFILE).resolve()), *arguments)
    leader.start()


def _spent(process: ManagedProcess, since_cpu_s: float = 0.0) -> Spent:
    pid = pid_of(process)
    return Spent(cpu_s_of(pid) - since_cpu_s, resident_mib(pid))


def _requests(plane: ControlPlane, installed: Installation, offset: int) -> Counter[str]:
    """What the controller asked of the API server since, by verb and resource."""
    user = f"system:serviceaccount:{installed.namespace}:cardquota-controller"
    found = audit.read(plane.audit_log, offset)
    return Counter(f"{each.verb} {each.resource}" for each in found if each.user == user)


def _admitted_s(leader: ManagedProcess, born: list[Birth], created: Mapping[str, float]) -> dict[str, float]:
    """The mean time from the answer of the creation to the lift, by class, as the leader's log tells."""
    lifted = dict(lifts(leader.log))
    found: dict[str, list[float]] = {}
    for birth in born:
        if birth.name in lifted:
            found.setdefault(birth.kind.name, []).append(max(0.0, lifted[birth.name] - created[birth.name]))
    return {name: mean(waits) for name, waits in found.items()}


def lifts(log: Path) -> Iterator[tuple[str, float]]:
    """Each pod that was lifted, and when, by a controller's log."""
    for at, entry in told(log):
        if entry.get("message") == "lifted":
            yield entry["pod"].partition("/")[2], at


def _reading_s(text: bytes, times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        orjson.loads(text)
    return time.process_time() - started
