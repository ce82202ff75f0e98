"""Programs are started, stopped and waited for, and none of them outlives the process that asked for it."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hack.controlplane import wait_for
from hack.controlplane.processes import (
    ManagedProcess,
    ProcessError,
    Supervisor,
    check_processes,
    log_file,
    uninterrupted,
)

ROOT = Path(__file__).resolve().parents[3]

# Prints the pids of the supervisor and of a `sleep`, then waits. With `fork` a child of its own holds every pipe too.
_PARENT = """
import os, signal, sys, threading, time
from pathlib import Path
from hack.controlplane.processes import Supervisor

# Who starts the tests in the background of a shell has them, and so this program, ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
directory = Path(sys.argv[1])
supervisor = Supervisor(directory)

def start():
    print(supervisor.pid, supervisor.start(["sleep", "600"], {"PATH": sys.argv[2]}, directory / "log"), flush=True)

thread = threading.Thread(target=start)  # its end must not end the program
thread.start()
thread.join()
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(600)
try:
    # The signal may come as soon as this is read.
    print("started", flush=True)
    sys.stdin.read()
except KeyboardInterrupt:
    supervisor.start(["true"], os.environ, directory / "log")
    print("served until the end", flush=True)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "plane"
    folder.mkdir()
    return folder


@pytest.fixture
def supervisor(directory: Path) -> Iterator[Supervisor]:
    running = Supervisor(directory)
    yield running
    running.close()


def managed(supervisor: Supervisor, directory: Path, script: str, ready_file: str) -> ManagedProcess:
    """A shell script; it is ready once `ready_file` is there."""
    marker = directory / ready_file
    return ManagedProcess(
        supervisor, "script", ["sh", "-c", script], log=directory / "log", ready=marker.exists
    )


def wait_until_gone(pidfds: list[int], timeout_s: float = 20) -> None:
    for pidfd in pidfds:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        assert poller.poll(timeout_s * 1000), "a process is still there"
        os.close(pidfd)


@contextmanager
def a_parent(directory: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with a supervisor and a program, and the pidfds of these two; its group is gone afterwards."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(directory), os.environ["PATH"], *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert parent.stdout.readline() == "started\n"
    try:
        yield parent, [os.pidfd_open(pid) for pid in pids]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate(timeout=20)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_die_with_their_parent(directory: Path, number: signal.Signals) -> None:
    with a_parent(directory) as (parent, pidfds):
        os.killpg(parent.pid, number)
        parent.wait(timeout=20)
        wait_until_gone(pidfds)
    assert not directory.exists()


def test_children_die_with_their_parent_even_if_another_process_holds_the_pipe(directory: Path) -> None:
    with a_parent(directory, "fork") as (parent, pidfds):
        parent.kill()
        parent.wait(timeout=20)
        wait_until_gone(pidfds)


def test_ctrl_c_reaches_the_parent_only_which_then_ends_things_in_order(directory: Path) -> None:
    with a_parent(directory) as (parent, pidfds):
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout is not None
        assert parent.stdout.readline() == "served until the end\n"
        wait_until_gone(pidfds)


def test_children_die_with_their_supervisor(directory: Path) -> None:
    supervisor = Supervisor(directory)
    child = supervisor.start(["sleep", "600"], os.environ, directory / "log")
    pidfd = os.pidfd_open(child)
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until_gone([pidfd])
    with pytest.raises(ProcessError, match="supervisor of the control plane is gone"):
        supervisor.start(["true"], os.environ, directory / "log")
    supervisor.close()
    assert not directory.exists()


def test_closing_kills_programs_that_do_not_want_to_end(directory: Path) -> None:
    supervisor = Supervisor(directory)
    # What a shell ignores, the program that it becomes ignores too.
    process = managed(supervisor, directory, f"trap '' TERM INT; touch {directory}/up; exec sleep 600", "up")
    process.start()
    assert process.pid is not None
    pidfd = os.pidfd_open(process.pid)
    supervisor.close()
    supervisor.close()
    process.release()
    assert not process.running
    wait_until_gone([pidfd], 0)
    assert not directory.exists()


def test_a_program_is_stopped_and_started_again_with_its_log_appended_to(
    supervisor: Supervisor, directory: Path
) -> None:
    process = managed(supervisor, directory, f"echo run; touch {directory}/up; exec sleep 600", "up")
    process.start()
    first = process.pid
    process.launch()
    assert process.pid == first
    process.stop()
    assert (process.running, process.pid, process.exit_status) == (False, None, -signal.SIGTERM)
    (directory / "up").unlink()
    process.start()
    assert process.pid not in {None, first}
    assert process.exit_status is None
    assert process.log_tail() == "run\nrun\n"
    process.kill()
    process.kill()
    assert process.exit_status == -signal.SIGKILL


def test_a_program_that_ignores_sigterm_is_killed_in_the_end(supervisor: Supervisor, directory: Path) -> None:
    process = managed(supervisor, directory, f"trap '' TERM; touch {directory}/up; exec sleep 600", "up")
    process.start()
    process.stop(timeout_s=0.05)
    assert process.exit_status == -signal.SIGKILL


def test_a_program_that_ends_before_it_is_ready_is_an_error_with_its_log(
    supervisor: Supervisor, directory: Path
) -> None:
    process = managed(supervisor, directory, "echo no such flag; exit 3", "never")
    with pytest.raises(ProcessError, match=r"(?s)script ended with status 3:.*no such flag"):
        process.start()


def test_a_program_that_never_gets_ready_is_an_error(supervisor: Supervisor, directory: Path) -> None:
    process = managed(supervisor, directory, "echo thinking; exec sleep 600", "never")
    process.launch()
    with pytest.raises(ProcessError, match="script is not ready after 0 s"):
        process.wait_ready(0.1)


def test_a_program_that_does_not_exist_is_an_error(supervisor: Supervisor, directory: Path) -> None:
    with pytest.raises(ProcessError, match="cannot start /no/such/program"):
        supervisor.start(["/no/such/program"], {}, directory / "log")
    assert supervisor.reap(supervisor.start(["true"], os.environ, directory / "log")) == 0


def test_a_program_sees_its_own_environment(supervisor: Supervisor, directory: Path) -> None:
    process = ManagedProcess(
        supervisor,
        "script",
        ["/bin/sh", "-c", "echo $COLOUR"],
        log=directory / "log",
        ready=lambda: True,
        env={"COLOUR": "blue"},
    )
    process.start()
    assert process.wait(20) == 0
    assert process.log_tail() == "blue\n"


@pytest.fixture
def ready(supervisor: Supervisor, directory: Path) -> Iterator[ManagedProcess]:
    """A program that was ready and ends, with 3, once the file `end` is there."""
    script = f"touch {directory}/up; while [ ! -e {directory}/end ]; do sleep 0.02; done; echo lost; exit 3"
    process = managed(supervisor, directory, script, "up")
    process.start()
    yield process
    process.release()


def test_one_that_ends_by_itself_is_told_to_whoever_waits_with_the_end_of_its_log(
    ready: ManagedProcess, directory: Path
) -> None:
    check_processes()
    (directory / "end").touch()
    for _ in range(2):
        with pytest.raises(ProcessError, match=r"(?s)script ended by itself with status 3:.*lost"):
            wait_for("a miracle", lambda: None)
    (directory / "end").unlink()
    ready.start()
    check_processes()


@pytest.mark.parametrize("how", ["stop", "kill", "release", "let_end", "wait"])
def test_one_that_was_to_end_is_not(ready: ManagedProcess, directory: Path, how: str) -> None:
    (directory / "end").touch()
    if how == "wait":
        assert ready.wait(20) == 3
    else:
        getattr(ready, how)()
    wait_for("it has ended", lambda: not ready.running, 20)
    check_processes()


def test_one_that_ends_with_its_supervisor_is_not(ready: ManagedProcess, supervisor: Supervisor) -> None:
    supervisor.close()
    assert not ready.running
    check_processes()


def test_one_that_was_never_ready_is_not(supervisor: Supervisor, directory: Path) -> None:
    process = managed(supervisor, directory, "exit 1", "never")
    process.launch()
    wait_for("it has ended", lambda: not process.running, 20)
    check_processes()
    process.release()


def test_each_log_has_a_file_of_its_own(tmp_path: Path) -> None:
    for name in ("a.log", "a-2.log", "a-3.log"):
        path = log_file(tmp_path, "a")
        assert path == tmp_path / name
        path.touch()


def test_a_signal_waits_for_what_has_to_be_known_to_be_cleaned_up() -> None:
    """A folder that nobody knows of yet would stay behind for ever."""
    order: list[str] = []
    former = signal.signal(signal.SIGTERM, lambda *_: order.append("told to end"))
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            order.append("made")
        order.append("after")
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert order == ["made", "told to end", "after", "told to end"]


def test_in_another_thread_nothing_has_to_wait() -> None:
    """Python runs handlers of signals in the main thread alone."""
    before = signal.getsignal(signal.SIGTERM)

    def enter() -> object:
        with uninterrupted():
            return signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(enter).result() is before
