"""Both processes with every port of theirs under attack from the pod network: they stay small, and binds are answered."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core import reasons
from core.settings import Settings
from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from kube.serving import BODY_LIMIT
from tests.apiserver.attacker import Port
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.honest import BOOKS, OTHER, Honest, readers, token
from tests.apiserver.manifests import binding, share_pod
from tests.apiserver.test_binding import CARD_MIB, NOBODY, record, records, refused
from tests.apiserver.trusting import HOOK, Kept

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "extender"
SECONDS = 150
"""How long the attack would go on; it is ended when all binds are answered."""
MOST_MIB = 400
EXTENDERS_LIMIT = Settings().extender.max_body_bytes
ANSWERED_S = 2.0
"""By the clock on the wall, every bind but one, though attacker and API server share the machine's cores with those attacked: where
other tests have the cores, the machine stands still for seconds now and then, and that keeps one bind waiting, not two."""
RUN_S = 1.0
"""Every bind, less the time in which the leader was ready to go on and the machine ran others."""
TOLD_S = 10.0
"""Everybody who asks the leader in order, from the first attempt on, token and rights looked up: as long as `explain` waits."""
REQUEST = {
    "uid": "u",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "operation": "CREATE",
    "userInfo": {"username": "somebody"},
    "namespace": "default",
    "name": "p",
    "object": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    },
}


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """A bind that the hook does not answer is none."""
    values = {"controller": {"bindingHook": {"failurePolicy": "Fail"}}}
    with Installation(control_plane, values=values) as installed:
        yield installed


def memory_mib(process: ManagedProcess) -> float:
    """The most that was resident at a time."""
    status = Path(f"/proc/{process.pid}/status").read_text("ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def not_run_s(process: ManagedProcess) -> tuple[float, float]:
    """For how long its event loop was ready to run so far while the cores ran others, and for how long the cores were taken away."""
    waited_ns = int(Path(f"/proc/{process.pid}/schedstat").read_text("ascii").split()[1])
    stolen = int(Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[8])
    return waited_ns / 1e9, stolen / os.sysconf("SC_CLK_TCK")


@contextmanager
def timed(process: ManagedProcess, taken: list[tuple[float, float]]) -> Iterator[None]:
    """Adds how long the block takes, and that less the time for which the machine kept the process from going on."""
    began, before = time.monotonic(), not_run_s(process)
    yield
    passed_s = time.monotonic() - began
    # Where a core is taken away, whoever waits for it waits that long, too: it is one time, not two.
    kept_s = max(after - earlier for earlier, after in zip(before, not_run_s(process), strict=True))
    taken.append((passed_s, passed_s - kept_s))


@contextmanager
def under_attack(targets: Sequence[Port]) -> Iterator[subprocess.Popen[bytes]]:
    texts = [target.text for target in targets]
    command = [sys.executable, "-m", "tests.apiserver.attacker", str(SECONDS), *texts]
    with subprocess.Popen(command, cwd=ROOT) as attacker:
        try:
            yield attacker
        finally:
            attacker.kill()


def ports(installation: Installation, plane: ControlPlane) -> dict[str, int]:
    """Where what is served; both processes have one for metrics and probes, too."""
    entries = Kept(plane, installation).entries()
    urls = {
        "webhook": next(client["url"] for name, client in entries.items() if name != HOOK),
        "hook": installation.controller_url(0),
        "kube": installation.kube_extender_url(0),
        "volcano": installation.extender_url(0),
        "answers": installation.answers_url(0),
        "webhook metrics": f"http://{installation.metrics_address('webhook')}",
        "controller metrics": f"http://{installation.metrics_address('controller')}",
    }
    return {name: urlsplit(url).port or 0 for name, url in urls.items()}


def strangers(found: dict[str, int]) -> list[Port]:
    """Every port, asked for what it does not answer: the attacker knows every path but the one of the hook, and no token."""
    return [
        Port(found["webhook"], "/mutate/pods", tls=True),
        Port(found["hook"], "/mutate/bindings", tls=True),
        Port(found["kube"], "/kube/filter", tls=True),
        Port(found["volcano"], "/volcano/jobEnqueueable"),
        Port(found["answers"], BOOKS, tls=True),
        Port(found["webhook metrics"], "/nothing"),
        Port(found["controller metrics"], "/nothing"),
    ]


def customers(found: dict[str, int], shown: str) -> list[Port]:
    """Every port where anybody is served, or anybody with a token, asked for just that; at the hook's nobody is."""
    review = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": REQUEST})
    kube, volcano = (
        (RECORDED / f"{name}.json").read_text("utf-8")
        for name in ("kube-scheduler-filter", "volcano-jobEnqueueable")
    )
    return [
        Port(found["webhook"], "", tls=True, served=request("POST /mutate/pods", review)),
        Port(found["kube"], "", tls=True, served=request("POST /kube/filter", kube)),
        Port(found["volcano"], "", served=request("POST /volcano/jobEnqueueable", volcano)),
        Port(found["answers"], "", tls=True, served=request(f"GET {BOOKS}", token=shown)),
        *(
            Port(found[f"{process} metrics"], "", served=request(f"GET {path}"))
            for process in ("webhook", "controller")
            for path in ("/metrics", "/healthz")
        ),
    ]


def senders(found: dict[str, int]) -> list[Port]:
    """The ports that take bodies from anybody, sent bodies alone: places and handshakes are left for all of them."""
    return [
        Port(found["webhook"], "/mutate/pods", tls=True, limit=BODY_LIMIT),
        *(
            Port(found[protocol], path, tls=protocol == "kube", limit=EXTENDERS_LIMIT)
            for protocol, path in (("kube", "/kube/filter"), ("volcano", "/volcano/jobEnqueueable"))
        ),
    ]


def request(line: str, body: str = "", token: str = "") -> str:
    """The whole text of it."""
    head = [f"{line} HTTP/1.1", "Host: x"]
    if token:
        head.append(f"Authorization: Bearer {token}")
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body.encode())}"]
    return "\r\n".join([*head, "", body])


@pytest.mark.parametrize("who", ["strangers", "customers", "senders"])
def test_binds_are_answered_and_memory_is_bounded(
    cluster: Cluster, installation: Installation, control_plane: ControlPlane, who: str
) -> None:
    """By an attacker with three addresses: who has more connections than a port takes, and as many handshakes as that gives;

    or who asks what is served there, and keeps the connections that are let in for it busy with that; or who sends bodies alone,
    as large as may be and larger.
    """
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=2, memory_mib=CARD_MIB))
    names = [f"p{number:02}" for number in range(40)]
    cluster.create(*[share_pod(name, 100, schedulerName=NOBODY) for name in names])
    taken: list[tuple[float, float]] = []
    (leader,) = installation.controller_processes
    processes = (leader, *installation.webhook_processes)
    found = ports(installation, control_plane)
    with readers(control_plane, cluster.namespace):
        honest = Honest(control_plane, installation, cluster.namespace, 60)
        targets = {
            "strangers": lambda: strangers(found),
            "customers": lambda: customers(found, token(control_plane, cluster.namespace, OTHER)),
            "senders": lambda: senders(found),
        }[who]()
        with under_attack(targets) as attacker:
            wait_for("the attack has begun", lambda: begun(installation, who), 60)
            with honest:
                for number, name in enumerate(names):
                    with timed(leader, taken):
                        answer = cluster.bind(binding(name, node))
                    if number < 2:
                        answer.expect(201)
                        assert records(cluster.pod(name)) == record(number)
                    else:
                        refused(answer, 409, reasons.MGPU_NO_ROOM)
                    time.sleep(0.2)
            assert attacker.poll() is None, "the attack went on for as long as there were binds"
            peaks = {process.name: memory_mib(process) for process in processes}
    assert len(taken) == len(names)
    assert sorted(passed_s for passed_s, _ in taken)[-2] < ANSWERED_S, taken
    assert max(run_s for _, run_s in taken) < RUN_S, taken
    assert max(peaks.values()) < MOST_MIB, peaks
    assert len(honest.taken) > 3, honest.taken
    assert max(honest.taken) < TOLD_S, honest.taken
    for process in processes:
        assert process.running


def begun(installation: Installation, who: str) -> bool:
    """Whether places are taken from those who came first, or anybody is answered in masses."""
    try:
        shown = installation.metrics("controller")
    except (OSError, HTTPException):  # the scraper has less patience than others have, or is cut off
        return False
    if who == "strangers":
        return samples(shown, "cardquota_connections_refused_total") > 20
    return samples(shown, "cardquota_extender_requests_total") > (1000 if who == "customers" else 20)
