"""One run: a control plane and an installation of its own, a plan carried out, rest awaited, and the audit log judged."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, BinaryIO, Final

from hack.controlplane import ControlPlane, check_processes, wait_for
from hack.install import NAMESPACE as OURS
from hack.install import Installation
from tests.apiserver.leaders import leading
from tests.apiserver.proxy import Proxy
from tests.chaos.checker import Disturbance, Terms, Verdict, judge, parse
from tests.chaos.checker.history import World
from tests.chaos.checker.rest import AtRest
from tests.chaos.clocks import Clocks
from tests.chaos.faults import ECHO_S, UNKNOWN_TERM_S, Faults
from tests.chaos.load import NAMESPACE, Load
from tests.chaos.plan import Plan

CENSUS: Final = "chaos-census"
DISTURBANCES: Final = "disturbances.json"
"""When who was disturbed: beside the audit log, so that a run can be judged again."""
TERMS: Final = Terms(controller=f"system:serviceaccount:{OURS}:cardquota-controller")
_VOLCANO: Final = "scheduling.volcano.sh"
_DEVICES: Final = "resource.k8s.io"
_CLAIMS: Final = ["resourceclaims", "resourceclaimtemplates"]
_WRITES: Final = ["create", "update", "patch", "delete"]
_PODS: Final = ["pods", "pods/status", "pods/binding", "bindings"]
AUDIT_RULES: Final = (
    {
        "level": "RequestResponse",
        "verbs": _WRITES,
        "namespaces": [OURS],
        "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
    },
    {
        "level": "RequestResponse",
        "verbs": _WRITES,
        "resources": [
            {"group": "", "resources": [*_PODS, "pods/ephemeralcontainers", "pods/resize", "nodes"]},
            {"group": _VOLCANO, "resources": ["queues", "queues/status", "podgroups"]},
            {"group": _DEVICES, "resources": _CLAIMS},
        ],
    },
    {
        "level": "RequestResponse",
        "verbs": _WRITES,
        "users": [TERMS.controller],
        "resources": [
            {"group": "events.k8s.io", "resources": ["events"]},
            {"group": "", "resources": ["events"]},
        ],
    },
    {
        "level": "RequestResponse",
        "verbs": ["list"],
        "users": [CENSUS],
        "resources": [
            {"group": "", "resources": ["pods", "nodes"]},
            {"group": _VOLCANO, "resources": ["queues", "podgroups"]},
            {"group": _DEVICES, "resources": _CLAIMS},
        ],
    },
)
"""What is recorded with its bodies: all that the judge reads."""

_LISTED: Final = f'"username":"{CENSUS}"'.encode()
_QUIET_S: Final = 8.0
_REST_S: Final = 330.0
"""A lift that was refused several times is tried again after up to five minutes."""
_JUDGED_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the judge found, what was done, and where the log is."""

    verdict: Verdict
    done: Counter[str]
    unrest: Sequence[str]
    """What was still open when it should have been at rest, and what the leader says of it; it was judged where it was."""
    rest_s: float
    audit_log: Path


@dataclass(frozen=True, slots=True)
class Bed:
    """A cluster with our processes, two of each, the controllers behind a proxy."""

    plane: ControlPlane
    installation: Installation
    proxy: Proxy
    clocks: Clocks

    @classmethod
    @contextmanager
    def made(cls, progress: Callable[[str], None], log_dir: Path | None = None) -> Iterator["Bed"]:
        """A bed of its own; it is gone afterwards."""
        with ExitStack() as stack:
            plane = stack.enter_context(
                ControlPlane(progress=progress, audit_rules=AUDIT_RULES, log_dir=log_dir)
            )
            proxy = stack.enter_context(Proxy(plane.url))
            installation = stack.enter_context(
                Installation(
                    plane,
                    namespace=OURS,
                    values={"cards": {"hierarchy": True}},
                    webhook=2,
                    controller=2,
                    controller_api=proxy.url,
                    progress=progress,
                )
            )
            plane.create_namespace(NAMESPACE)
            plane.add_nodes(*Load.nodes())
            yield cls(plane, installation, proxy, stack.enter_context(Clocks.of(installation)))


def carry_out(bed: Bed, plan: Plan, progress: Callable[[str], None]) -> Outcome:
    """Do what the plan says, wait for rest, take the census and judge."""
    over = threading.Event()
    faults = Faults(bed.plane, bed.installation, bed.proxy)
    with closing(bed.plane.client(bed.plane.admin_kubeconfig)) as client:
        load = Load(client, over)
        load.prepare()
        with ThreadPoolExecutor(3) as pool:
            works = [
                pool.submit(load.run, plan.steps),
                pool.submit(faults.run, plan.faults, plan.seconds, over),
                pool.submit(bed.clocks.run, plan.clocks, plan.seconds, over),
            ]
            try:
                wait_for(
                    "the plan is carried out",
                    lambda: (
                        any(work.done() and work.exception() for work in works)
                        or all(work.done() for work in works)
                    ),
                    plan.seconds * 3 + 300,
                )
            finally:
                over.set()
            for work in works:
                work.result()
    bed.plane.api.close()
    Load(bed.plane.api, threading.Event()).calm()
    progress("faults and load are over")
    began = time.monotonic()
    longest_s = ECHO_S + UNKNOWN_TERM_S + _QUIET_S
    echoes = max((each.ended for each in faults.seen), default=0.0)
    wait_for("the last fault has died away", lambda: time.time() > echoes, longest_s)
    unrest, verdict = _rested(bed, faults.seen)
    check_processes()
    done = load.done + bed.clocks.done + Counter(f"fault: {each.kind}" for each in faults.seen)
    return Outcome(verdict, done, unrest, time.monotonic() - began, bed.plane.audit_log)


def _rested(bed: Bed, disturbances: Sequence[Disturbance]) -> tuple[Sequence[str], Verdict]:
    """What is still open when it should have been at rest, and the verdict.

    Whatever was quiet for a while may stir while the census is prepared, by Kubernetes alone: then it is awaited once more.
    """
    deadline = time.monotonic() + _REST_S
    while True:
        unrest = _unrest(bed, deadline)
        verdict = take_census(bed, disturbances)
        if unrest or not verdict.unrest:
            return unrest, verdict
        if time.monotonic() > deadline:
            return (verdict.unrest,), verdict


def _unrest(bed: Bed, deadline: float) -> Sequence[str]:
    """Returns once nothing is written any more and nobody waits for nothing; or, when that takes too long, what is open."""
    last, since = "", time.monotonic()
    starving: list[Any] = []
    open_: list[str] = []
    while time.monotonic() < deadline:
        check_processes()
        world = _world(bed)
        resting = AtRest(world, TERMS)
        starving = list(resting.starving())
        wrong = (*starving, *resting.untrue(), *resting.orphans())
        open_ = [f"{thing['metadata']['name']} {text}" for thing, text in wrong]
        now = repr(sorted((uid, thing["metadata"]["resourceVersion"]) for uid, thing in _moving(world)))
        if now != last or open_ or len(leading(bed.installation)) != 1:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > _QUIET_S:
            return ()
        threading.Event().wait(1.0)
    return (*open_, *(_explained(bed, pod["metadata"]["name"]) for pod, _ in starving[:3])) or ("it changes",)


def _explained(bed: Bed, pod: str) -> str:
    """Why a pod waits, by the books of whoever leads."""
    command = [sys.executable, "-m", "cli", "explain", f"{NAMESPACE}/{pod}"]
    command += ["--kubeconfig", str(bed.plane.admin_kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def _moving(world: World) -> list[tuple[str, Any]]:
    """All but nodes: they have heartbeats."""
    return [
        (uid, thing) for kind in ("pods", "podgroups", "queues") for uid, thing in world.objects[kind].items()
    ]


_PATHS: Final = {
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "queues": f"/apis/{_VOLCANO}/v1beta1/queues",
    "podgroups": f"/apis/{_VOLCANO}/v1beta1/podgroups",
    **{kind: f"/apis/{_DEVICES}/v1/{kind}" for kind in _CLAIMS},
}


def _world(bed: Bed) -> World:
    world = World()
    for kind, path in _PATHS.items():
        world.objects[kind] = {
            item["metadata"]["uid"]: item for item in bed.plane.api.get(path).expect()["items"]
        }
    return world


def take_census(bed: Bed, disturbances: Sequence[Disturbance] = ()) -> Verdict:
    """List everything, after the time within which status has to be true, and judge the log."""
    threading.Event().wait(TERMS.prompt_s + 1.0)
    log = bed.plane.audit_log
    before = log.read_bytes().count(_LISTED)
    with closing(bed.plane.client(bed.plane.user_kubeconfig(CENSUS, ["system:masters"]))) as client:
        for path in _PATHS.values():
            client.get(path).expect()
    wait_for("the census is in the log", lambda: log.read_bytes().count(_LISTED) >= before + len(_PATHS))
    note = bed.plane.log_directory / DISTURBANCES
    note.write_text(json.dumps([asdict(each) for each in disturbances], indent=1), "utf-8")
    # It takes seconds of a processor, in which the proxy, a thread of this process, would hardly come to its turn.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(judged, bed.plane.log_directory).result(_JUDGED_S)


def judged(folder: Path) -> Verdict:
    """The verdict on the logs of a run, also long after it."""
    seen = [Disturbance(**each) for each in json.loads((folder / DISTURBANCES).read_text("utf-8"))]
    with (folder / "audit.log").open("rb") as log:
        return judge(parse(written(log)), seen, TERMS)


def written(log: BinaryIO) -> Iterator[bytes]:
    """The lines that are there now.

    A log that lives may grow as fast as it is read: Kubernetes' controller of claims writes some hundred kilobytes a second.
    """
    left = os.fstat(log.fileno()).st_size
    while left and (line := log.readline(left)):
        left -= len(line)
        yield line
