"""Processes that nothing happens to sleep: how often they wake, counted by the kernel."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leading
from tests.apiserver.manifests import card_pod, queue

WINDOW_S: Final = 15.0
"""Longer than a watch lasts in which nothing is said."""
MOST_IN_A_SECOND: Final = 20
"""Each of a dozen watches begins anew every eleven seconds, over a connection of its own; the Lease is renewed every two: that is
eleven, and fifteen on a busy machine, where answers come in more pieces. A timer of a tenth of a second makes ten more."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def wakes(process: ManagedProcess) -> int:
    """How often any thread of a process has gone to sleep so far, and so been woken."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    lines = (line for task in tasks for line in (task / "status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


def test_leader_standby_and_webhook_sleep_while_nothing_happens(
    cluster: Cluster, installation: Installation
) -> None:
    """With pods that run and pods that wait. A timer that goes off again and again is found by its number."""
    card, name = cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, f'{{"{card}": 1}}'))
    cluster.create(*(card_pod(f"p{number}", card, name) for number in range(3)))
    wait_for("one runs", lambda: len(cluster.running()) == 1)
    wait_for("one leads", lambda: len(leading(installation)) == 1)
    threading.Event().wait(WINDOW_S)  # what has to be told of the pods is told
    processes = (*installation.controller_processes, *installation.webhook_processes)
    before = [wakes(process) for process in processes]
    threading.Event().wait(WINDOW_S)
    each = {
        process.name: (wakes(process) - count) / WINDOW_S
        for process, count in zip(processes, before, strict=True)
    }
    assert max(each.values()) < MOST_IN_A_SECOND, each
