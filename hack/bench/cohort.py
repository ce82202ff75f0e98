"""One cohort as Kueue publishes it, from end to end: real pods on a real control plane, and what the leader spends on each.

With the environment variable `COHORT_PROFILE` the file of that name tells where the leader's processor time went.
"""

import heapq
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

import orjson

from core import names
from hack.bench.clock import cpu_s_of, quotient
from hack.bench.effort import Effort
from hack.bench.peers import BenchError
from hack.bench.report import Row, Target
from hack.controlplane import ApiError, ControlPlane, ManagedProcess, ProcessError, WaitError, audit, wait_for
from hack.controlplane.components import COMPLETE_AFTER
from hack.controlplane.nodes import gpu_node
from hack.install import Installation

QUEUES: Final = 6
QUOTA: Final = 20
CARD: Final = "NVIDIA-H200"

_NODES: Final = 5
_CARDS: Final = 40
"""On each node: 20 cards in one pod, and room is never what they wait for."""
_NAMESPACE: Final = "cohort"
_CREATORS: Final = 8
_PROFILE: Final = os.environ.get("COHORT_PROFILE", "")
_STORED: Final = 5
"""A pod is stored when it is created, lifted, bound, started and finished: so often it has to be read at least."""


@dataclass(frozen=True, slots=True)
class Class:
    """Pods alike of each queue: how many at full size, cards of one, how long it runs, how often one comes, its priority."""

    name: str
    pods: int
    cards: int
    runs_s: float
    every_s: float
    priority: int


CLASSES: Final = (
    Class("small", 350, 1, 0.2, 0.1, 50),
    Class("medium", 100, 5, 0.5, 0.5, 100),
    Class("large", 50, 20, 1.0, 1.2, 200),
)


@dataclass(frozen=True, slots=True, order=True)
class Birth:
    """A pod to be created, `at_s` seconds after the beginning."""

    at_s: float
    queue: int
    size: int
    number: int

    @property
    def kind(self) -> Class:
        """Which pods it is like."""
        return CLASSES[self.size]

    @property
    def name(self) -> str:
        """The name of the pod."""
        return f"{self.kind.name}-{self.queue}-{self.number}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen: `admitted_s` is the mean time from creation to lift by class, the rest counts."""

    pods: int
    wall_s: float
    cpu_s: float
    read_s: float
    events: int
    patches: int
    requests: Mapping[str, int]
    admitted_s: Mapping[str, float]


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """Creates the pods of all queues, and waits for the last to finish."""
    born = births(effort.share)
    try:
        with ControlPlane(progress=progress) as plane, Installation(plane, progress=progress) as installed:
            seen = _played(plane, installed, born, progress)
    except (ApiError, WaitError, ProcessError, OSError) as error:
        raise BenchError(f"{type(error).__name__}: {error}") from error
    progress(f"requests of the controller: {dict(seen.requests)}")
    return rows(seen, ideal(born), effort.share)


def births(share: float) -> list[Birth]:
    """All pods in the order of their creation."""
    return sorted(
        Birth(number * kind.every_s, queue, size, number)
        for queue in range(QUEUES)
        for size, kind in enumerate(CLASSES)
        for number in range(max(1, round(kind.pods * share)))
    )


def ideal(born: list[Birth]) -> tuple[float, dict[str, float]]:
    """The end of the last pod, and the mean time to admission by class, were nothing but quota to be waited for.

    By priority, and cards are kept free for the first in line: no order has the last pod end earlier.
    """
    ends: list[float] = []
    waits: dict[str, list[float]] = {kind.name: [] for kind in CLASSES}
    for queue in range(QUEUES):
        coming = [birth for birth in born if birth.queue == queue]
        waiting: list[Birth] = []
        running: list[tuple[float, int]] = []
        free = QUOTA
        while coming or waiting or running:
            now = min([birth.at_s for birth in coming[:1]] + [end for end, _ in running[:1]])
            while running and running[0][0] <= now:
                free += heapq.heappop(running)[1]
            while coming and coming[0].at_s <= now:
                waiting.append(coming.pop(0))
            waiting.sort(key=lambda birth: (-birth.kind.priority, birth.at_s))
            while waiting and waiting[0].kind.cards <= free:
                birth = waiting.pop(0)
                free -= birth.kind.cards
                heapq.heappush(running, (now + birth.kind.runs_s, birth.kind.cards))
                waits[birth.kind.name].append(now - birth.at_s)
                ends.append(now + birth.kind.runs_s)
    return max(ends), {name: mean(found or [0.0]) for name, found in waits.items()}


def rows(seen: Seen, best: tuple[float, Mapping[str, float]], share: float) -> list[Row]:
    """What it took, beside the least that it could have taken."""
    judged = share >= 1
    size = f"{seen.pods:,} pods"
    nothing = "were nothing but quota to be waited for"
    read = f"orjson reading each pod {_STORED} times, as often as it is stored at least"
    once = "each pod is lifted by one patch"

    def row(
        what: str, unit: str, figure: float, floor: float, floor_is: str, target: float | None = None
    ) -> Row:
        bound = Target("figure", "<=", target) if judged and target is not None else None
        return Row(
            benchmark="cohort",
            what=f"{size}: {what}",
            figure=figure,
            floor=floor,
            ratio=quotient(figure, floor),
            unit=unit,
            floor_is=floor_is,
            target=bound,
        )

    end_s, waits = best
    return [
        row("from the first to the end of the last", "s", seen.wall_s, end_s, nothing, 80),
        *(
            row(f"{name}: mean time to admission", "s", seen.admitted_s.get(name, 0.0), waits[name], nothing)
            for name in waits
        ),
        row(
            "leader's processor time for each",
            "ms",
            seen.cpu_s * 1000 / seen.pods,
            seen.read_s * 1000 / seen.pods,
            read,
            5,
        ),
        row("patches of pods for each", "", seen.patches / seen.pods, 1, once, 2),
        row("events for each", "", seen.events / seen.pods, 0, "none", 2),
    ]


# -- on the control plane ----------------------------------------------------------------------------------------


def _played(
    plane: ControlPlane, installed: Installation, born: list[Birth], progress: Callable[[str], None]
) -> Seen:
    (leader,) = installed.controller_processes
    plane.add_nodes(
        *(gpu_node(f"n{number}", product=CARD, cards=_CARDS, memory_mib=143771) for number in range(_NODES))
    )
    plane.create_namespace(_NAMESPACE)
    for number in range(QUEUES):
        plane.api.create(_queue(number)).expect()
    for kind in CLASSES:
        plane.api.create(_priority(kind)).expect()
    if _PROFILE:
        _run_profiled(leader)
    with ThreadPoolExecutor(1) as warming:
        # One pod first, so that starting up and being elected are over.
        warming.submit(plane.api.create, _pod(Birth(0, 0, 0, -1))).result().expect()
    wait_for("a first pod has run", lambda: _unfinished(plane) == 0, 60)
    offset, cpu_before = plane.audit_log.stat().st_size, _cpu_s(leader)
    started = time.time()
    created = _created(plane, born, started)
    progress(f"{len(born)} pods created in {time.time() - started:.0f} s")
    wait_for("all pods have finished", lambda: _unfinished(plane) == 0, 600)
    wall_s, cpu_s = time.time() - started, _cpu_s(leader) - cpu_before
    text = orjson.dumps(plane.api.get(_path(plane, born[-1].name)).expect())
    if _PROFILE:
        leader.stop(30.0)
    requests = _requests(plane, installed, offset)
    return Seen(
        pods=len(born),
        wall_s=wall_s,
        cpu_s=cpu_s,
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
        "spec": {"weight": 1},
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


def _cpu_s(process: ManagedProcess) -> float:
    if process.pid is None:
        raise BenchError(f"{process.name} has ended")
    return cpu_s_of(process.pid)


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
    for line in log.read_bytes().splitlines():
        if b'"lifted"' in line:
            entry = orjson.loads(line)
            yield entry["pod"].partition("/")[2], datetime.fromisoformat(entry["time"]).timestamp()


def _reading_s(text: bytes, times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        orjson.loads(text)
    return time.process_time() - started
