"""Processes that nothing happens to sleep: how often they wake, counted by the kernel."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
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

WINDOWS: Final = 3
"""What the machine does beside falls into one and not into another; a timer goes off in all of them."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def wakes(process: ManagedProcess) -> dict[str, int]:
    """How often each thread of a process has gone to sleep so far, and so been woken."""
    found = {}
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
            lines = (task / "status").read_text().splitlines()
            (count,) = (line.split()[1] for line in lines if line.startswith("voluntary_ctxt_switches:"))
            found[task.name] = int(count)
    return found


def wakes_in_a_second(processes: Sequence[ManagedProcess]) -> dict[str, float]:
    """How often each process wakes in a second, over one window, by those of its threads that are there at its end."""
    before = [wakes(process) for process in processes]
    threading.Event().wait(WINDOW_S)
    found = {}
    for process, former in zip(processes, before, strict=True):
        count = sum(after - former.get(thread, 0) for thread, after in wakes(process).items())
        found[process.name] = count / WINDOW_S
    return found


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
    each = wakes_in_a_second(processes)
    for _ in range(WINDOWS - 1):
        if max(each.values()) < MOST_IN_A_SECOND:
            break
        again = wakes_in_a_second(processes)
        each = {name: min(count, again[name]) for name, count in each.items()}
    assert max(each.values()) < MOST_IN_A_SECOND, each
