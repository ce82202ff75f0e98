"""Both processes with every port of theirs under attack from the pod network: they stay small, and binds are answered."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core import reasons
from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.manifests import binding, share_pod
from tests.apiserver.test_binding import CARD_MIB, NOBODY, record, records, refused
from tests.apiserver.trusting import HOOK, Kept

ROOT = Path(__file__).parents[2]
SECONDS = 150
"""How long the attack would go on; it is ended when all binds are answered."""
MOST_MIB = 400
ANSWERED_S = 2.0
"""Every bind, though attacker and API server share the machine's cores with those attacked."""


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


@contextmanager
def under_attack(*targets: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.apiserver.attacker", str(SECONDS), *targets]
    with subprocess.Popen(command, cwd=ROOT) as attacker:
        try:
            yield attacker
        finally:
            attacker.kill()


@pytest.mark.timeout(240)
def test_binds_are_answered_and_memory_is_bounded(
    cluster: Cluster, installation: Installation, control_plane: ControlPlane
) -> None:
    """The attacker has three addresses and more connections than a port takes, with as many handshakes as that gives.

    It knows every path but the one of the hook.
    """
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=2, memory_mib=CARD_MIB))
    names = [f"p{number:02}" for number in range(40)]
    cluster.create(*[share_pod(name, 100, schedulerName=NOBODY) for name in names])
    entries = Kept(control_plane, installation).entries()
    webhook = next(urlsplit(client["url"]).port for name, client in entries.items() if name != HOOK)
    controller = urlsplit(installation.controller_url(0)).port
    schedulers = urlsplit(installation.kube_extender_url(0)).port
    volcano = urlsplit(installation.extender_url(0)).port
    targets = (
        f"{webhook}=/mutate/pods,tls",
        f"{controller}=/mutate/bindings,tls",
        f"{schedulers}=/kube/filter,tls",
        f"{volcano}=/volcano/jobEnqueueable",
    )
    taken: list[float] = []
    with under_attack(*targets) as attacker:
        wait_for(
            "the attack has begun",
            lambda: samples(installation.metrics("controller"), "cardquota_connections_refused_total") > 20,
            60,
        )
        for number, name in enumerate(names):
            began = time.monotonic()
            answer = cluster.bind(binding(name, node))
            taken.append(time.monotonic() - began)
            if number < 2:
                answer.expect(201)
                assert records(cluster.pod(name)) == record(number)
            else:
                refused(answer, 409, reasons.MGPU_NO_ROOM)
            time.sleep(0.2)
        assert attacker.poll() is None, "the attack went on for as long as there were binds"
        processes = (*installation.controller_processes, *installation.webhook_processes)
        peaks = {process.name: memory_mib(process) for process in processes}
    assert len(taken) == len(names)
    assert max(taken) < ANSWERED_S, sorted(taken)
    assert max(peaks.values()) < MOST_MIB, peaks
    for process in processes:
        assert process.running
