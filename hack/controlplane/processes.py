"""Starts, watches and stops the programs of a control plane through its supervisor."""

import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

START_TIMEOUT_S = 90.0

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
# Both servers wait for their clients to hang up, and informers never do; a kill loses nothing, since etcd has the data
# and the kernel has what etcd wrote.
_STOP_TIMEOUT_S = 3.0
_KILL_TIMEOUT_S = 15.0
_SUPERVISOR_TIMEOUT_S = 30.0
_READY_POLL_S = 0.05
_TAIL_BYTES = 8192
_ENDING = (signal.SIGINT, signal.SIGTERM)


class ProcessError(Exception):
    """A program did not start, ended by itself, or does not stop."""


_WATCHED: "WeakSet[ManagedProcess]" = WeakSet()
"""The programs that were ready and that nobody has asked to end, of whatever control plane."""


def check_processes() -> None:
    """Raise `ProcessError` with the end of its log for a program that ended by itself after it was ready.

    Whoever waits for something calls this all along: what a dead program should have done will never happen. It is
    raised anew until the program is started again or stopped, or its supervisor is closed.
    """
    for process in tuple(_WATCHED):
        process.check()


def log_file(folder: Path, name: str) -> Path:
    """Return `<name>.log`, or the first of `<name>-2.log`, ... that nobody has written to."""
    for number in itertools.count(1):
        path = folder / (f"{name}.log" if number == 1 else f"{name}-{number}.log")
        if not path.exists():
            return path
    raise AssertionError("there are enough numbers")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What would end this process by a signal waits for the end of the block: for what has to be known to be cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    former = {number: signal.signal(number, lambda caught, _: came.append(caught)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for got in came:
            signal.raise_signal(got)


class Supervisor:
    """The client side of `supervisor.py`; used from any thread."""

    def __init__(self, directory: Path) -> None:
        self._lock = threading.Lock()
        self._directory = directory
        self._closed = False
        # A session of its own: Ctrl-C in the terminal reaches this process alone, which then stops things in order.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self._process.pid

    @property
    def closed(self) -> bool:
        """Whether all programs were asked to end."""
        return self._closed

    def start(self, argv: Sequence[str], env: Mapping[str, str], log: Path) -> int:
        """Start a program with its output appended to `log` and return its pid."""
        answer = self._ask({"argv": list(argv), "env": dict(env), "log": str(log)})
        if "error" in answer:
            raise ProcessError(f"cannot start {answer['error']}")
        return int(answer["pid"])

    def reap(self, pid: int) -> int:
        """Collect a program that has ended and return its exit status, negative for a signal."""
        return int(self._ask({"reap": pid})["code"])

    def close(self) -> None:
        """Kill every program and wait until the supervisor has removed the folder and ended."""
        if self._closed:
            return
        self._closed = True
        try:
            self._process.communicate(timeout=_SUPERVISOR_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # and the kernel kills the programs
            self._process.communicate()
        shutil.rmtree(self._directory, ignore_errors=True)  # there only if the supervisor was killed

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (BrokenPipeError, ValueError):
                line = ""
        if not line:
            raise ProcessError("the supervisor of the control plane is gone, and its programs with it")
        answer: dict[str, Any] = json.loads(line)
        return answer


class ManagedProcess:
    """One program: started again with the same arguments as often as wanted, its log appended to.

    `ready` asks the program once whether it is ready to serve; `env` is its whole environment, by default this
    process's.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        ready: Callable[[], bool],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._ready = ready
        self._env = dict(os.environ if env is None else env)
        self.argv = tuple(argv)
        self.log = log
        self._supervisor = supervisor
        self._pid: int | None = None
        self._pidfd: int | None = None
        self.exit_status: int | None = None

    @property
    def pid(self) -> int | None:
        """The process id while the program runs."""
        return self._pid if self.running else None

    @property
    def running(self) -> bool:
        """Whether the program was started and has not ended."""
        return self._pidfd is not None and not self._ended(0)

    def launch(self) -> None:
        """Start the program without waiting for it; nothing happens when it runs already."""
        if self.running:
            return
        _WATCHED.discard(self)
        self._collect()
        self.exit_status = None
        self._pid = self._supervisor.start(self.argv, self._env, self.log)
        # Until it is reaped the pid cannot be given to another process, so this descriptor is certainly the program's.
        self._pidfd = os.pidfd_open(self._pid)

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return once the program is ready; `ProcessError` with the end of its log if it ends or takes longer.

        From then on its end is an error, see `check_processes`, unless it comes by a method of this object.
        """
        deadline = time.monotonic() + timeout_s
        while not self._ready():
            if self.wait(_READY_POLL_S) is not None:
                raise ProcessError(f"{self.name} ended with status {self.exit_status}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} is not ready after {timeout_s:.0f} s:\n{self.log_tail()}")
        _WATCHED.add(self)

    def check(self) -> None:
        """Raise `ProcessError` if the program was ready and has ended by itself."""
        if self not in _WATCHED or self._supervisor.closed or self.running:
            return
        self._collect()
        raise ProcessError(f"{self.name} ended by itself with status {self.exit_status}:\n{self.log_tail()}")

    def let_end(self) -> None:
        """Make the end of the program no error from now on; for whoever ends it by other means than `stop` and `kill`."""
        _WATCHED.discard(self)

    def start(self) -> None:
        """Start the program and return once it is ready."""
        self.launch()
        self.wait_ready()

    def restart(self) -> None:
        """Stop the program, start it with the same arguments and return once it is ready."""
        self.stop()
        self.start()

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Ask the program to end (SIGTERM), kill it after `timeout_s`, and wait until it is gone."""
        self._end((signal.SIGTERM, timeout_s), (signal.SIGKILL, _KILL_TIMEOUT_S))

    def kill(self) -> None:
        """Kill the program (SIGKILL) and wait until it is gone."""
        self._end((signal.SIGKILL, _KILL_TIMEOUT_S))

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status once the program has ended (negative for a signal), None after `timeout_s`.

        Who has been told of the end so is not told again by `check_processes`.
        """
        if not self._ended(timeout_s):
            return None
        self.let_end()
        self._collect()
        return self.exit_status

    def release(self) -> None:
        """Forget the program, which has ended with its supervisor."""
        self.let_end()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd, self._pid = None, None

    def log_tail(self) -> str:
        """Return the end of the program's output."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")

    def _ended(self, timeout_s: float) -> bool:
        if self._pidfd is None:
            return True
        # poll, not select: the number of the descriptor may be above 1024 in a large test run.
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))

    def _end(self, *signals: tuple[signal.Signals, float]) -> None:
        self.let_end()
        for number, timeout_s in signals:
            if self._pidfd is not None and not self._ended(0):
                signal.pidfd_send_signal(self._pidfd, number)
            if self._ended(timeout_s):
                self._collect()
                return
        raise ProcessError(f"{self.name} (pid {self._pid}) does not end")

    def _collect(self) -> None:
        if self._pidfd is None or self._pid is None:
            return
        os.close(self._pidfd)
        self._pidfd, pid, self._pid = None, self._pid, None
        self.exit_status = self._supervisor.reap(pid)
