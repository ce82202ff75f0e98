"""Cohorts as Kueue publishes them, from end to end: real pods on a real control plane, and what our processes spend on each.

With the environment variable `COHORT_PROFILE` the file of that name tells where the leader's processor time went.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

import orjson

from core import names
from hack.bench import unaided
from hack.bench.arrivals import CARD, Arrivals, in_queue, recorded
from hack.bench.clock import cpu_s_of, machine_cpu_s, resident_mib
from hack.bench.effort import Effort
from hack.bench.installed import errors_told, pid_of, spent_s, told
from hack.bench.report import Row, Sheet, Target
from hack.bench.shape import COHORTS, QUOTA, Birth, births, ideal
from hack.controlplane import ControlPlane, ManagedProcess, audit
from hack.controlplane.nodes import gpu_node
from hack.install import NAMESPACE, Installation

WALL: Final = Target("figure", "<=", 80)
"""Seconds that one cohort may take, where its load over its quota takes 66 s."""
_LEADER: Final = Target("figure", "<=", 5)
_WRITES: Final = Target("figure", "<=", 2)

_CARDS: Final = 2 * QUOTA
"""On each node, of which there are as many as queues: room is never what they wait for."""
_LIMIT_S: Final = 600.0
"""For each cohort."""
_CONTROLLER: Final = f"system:serviceaccount:{NAMESPACE}:cardquota-controller"
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
    born, limit_s = births(effort.share, cohorts), cohorts * _LIMIT_S
    with errors_told():
        with (
            ControlPlane(progress=progress, audit_rules=recorded(_CONTROLLER)) as plane,
            Installation(plane, progress=progress) as installed,
        ):
            seen = _played(plane, installed, born, limit_s, progress)
        progress(f"requests of the controller: {dict(seen.requests)}")
        progress("the same pods without us")
        without = unaided.run(born, limit_s, progress)
    return rows(name, seen, ideal(born), without, effort.share, wall=WALL if cohorts == 1 else None)


def rows(
    benchmark: str,
    seen: Seen,
    best: tuple[float, Mapping[str, float]],
    without: unaided.Unaided,
    share: float,
    *,
    wall: Target | None = WALL,
) -> list[Row]:
    """What it took, beside the least that it could have taken. `wall` is the target of the whole; `without` is seen without us."""
    row = Sheet(benchmark, share >= 1, f"{seen.pods:,} pods: ").row
    nothing = "were nothing but quota to be waited for"
    read = f"orjson reading each pod {_STORED} times, as often as it is stored at least"
    once = "each pod is lifted by one patch"
    alone = "the same control plane without us, one node with a queue's quota of cards for each queue"

    end_s, waits = best
    each = 1000 / seen.pods
    ours_s = seen.leader.cpu_s + seen.webhook.cpu_s
    return [
        row("from the first to the end of the last", "s", seen.wall_s, end_s, nothing, wall),
        row("all that time, beside kube-scheduler alone", "s", seen.wall_s, without.wall_s, alone),
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
            "processor time of the whole machine for each",
            "ms",
            seen.machine_cpu_s * each,
            without.cpu_s * each,
            alone,
        ),
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
    limit_s: float,
    progress: Callable[[str], None],
) -> Seen:
    (leader,), (webhook,) = installed.controller_processes, installed.webhook_processes
    queues = sorted({birth.queue for birth in born})
    plane.add_nodes(
        *(
            gpu_node(f"n{number}", product=CARD, cards=_CARDS, memory_mib=143771)
            for number in range(len(queues))
        )
    )
    for queue in queues:
        plane.api.create(_queue(queue)).expect()
    if _PROFILE:
        _run_profiled(leader)
    arrivals = Arrivals(plane, in_queue)
    arrivals.prepare()
    offset = plane.audit_log.stat().st_size
    before = [_spent(process).cpu_s for process in (leader, webhook)]
    machine_before_s, programs_before_s = machine_cpu_s(), spent_s(plane)
    wall_s, created = arrivals.play(born, limit_s, progress)
    machine_s, programs_s = machine_cpu_s() - machine_before_s, spent_s(plane)
    leading, reviewing = (
        _spent(process, since) for process, since in zip((leader, webhook), before, strict=True)
    )
    text = orjson.dumps(arrivals.read(born[-1].name))
    if _PROFILE:
        leader.stop(30.0)
    requests = _requests(plane, offset)
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


def _queue(number: int) -> dict[str, Any]:
    quota = orjson.dumps({CARD: QUOTA}).decode()
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": f"cohort-{number}", "annotations": {names.CARD_QUOTA_ANNOTATION: quota}},
        "spec": {"weight": 1, "dequeueStrategy": "fifo"},
    }


def _run_profiled(leader: ManagedProcess) -> None:
    """Starts the leader again, watched from within."""
    leader.stop(30.0)
    program, _module, _cli, *arguments = leader.argv
    leader.argv = (program, "-m", "hack.bench.sampled", str(Path(_PROFILE).resolve()), *arguments)
    leader.start()


def _spent(process: ManagedProcess, since_cpu_s: float = 0.0) -> Spent:
    pid = pid_of(process)
    return Spent(cpu_s_of(pid) - since_cpu_s, resident_mib(pid))


def _requests(plane: ControlPlane, offset: int) -> Counter[str]:
    """What the controller asked of the API server since, by verb and resource."""
    found = audit.read(plane.audit_log, offset, of=_CONTROLLER)
    return Counter(f"{each.verb} {each.resource}" for each in found)


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
