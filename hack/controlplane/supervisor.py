"""Parent of every program of a control plane, so that none of them outlives the process that asked for it.

Run as a program of its own (`supervisor.py PARENT_PID DIRECTORY`, standard library only). It reads one JSON request per
line on standard input and answers each with one line:

* `{"argv": [...], "env": {...}, "log": "..."}` starts a program and answers `{"pid": n}` or `{"error": "..."}`;
* `{"reap": pid}` collects a program that has ended and answers `{"code": n}`, negative for a signal.

When the asking process ends, however it ends, the programs are killed and DIRECTORY is removed. Two ways lead there: the
end of standard input, and a pidfd of the parent, which works even if a child of the parent still holds the pipe. When the
supervisor itself is killed, the kernel kills the programs (PR_SET_PDEATHSIG). That signal is sent when the *thread*
dies that started the program; here that is the only thread, which is why the programs are not started by the parent.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_PR_SET_PDEATHSIG = 1


class Supervisor:
    """The programs started so far, by pid. They stay zombies until they are reaped, so no pid is used twice."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._programs: dict[int, subprocess.Popen[bytes]] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what one request asks for."""
        if "reap" in request:
            return {"code": self._programs.pop(request["reap"]).wait()}
        try:
            return {"pid": self._start(request["argv"], request["env"], request["log"])}
        except OSError as error:
            return {"error": f"{request['argv'][0]}: {error}"}

    def kill_all(self) -> None:
        """Kill what runs and wait for it."""
        for program in self._programs.values():
            program.kill()
        for program in self._programs.values():
            program.wait()

    def _start(self, argv: list[str], env: dict[str, str], log: str) -> int:
        with open(log, "ab") as output:  # noqa: PTH123  importing pathlib doubles the start-up time of this program
            program = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=self._die_with_me,  # noqa: PLW1509  there is no second thread to deadlock with
            )
        self._programs[program.pid] = program
        return program.pid

    def _die_with_me(self) -> None:
        if self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def serve(parent: int) -> None:
    """Answer requests until the parent is gone; the programs are dead when this returns."""
    supervisor = Supervisor()
    try:
        parent_gone = os.pidfd_open(parent)
    except ProcessLookupError:
        return
    requests = sys.stdin.fileno()
    pending = b""
    try:
        while True:
            readable, _, _ = select.select([requests, parent_gone], [], [])
            chunk = os.read(requests, 1 << 16) if parent_gone not in readable else b""
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                sys.stdout.write(json.dumps(supervisor.answer(json.loads(line))) + "\n")
                sys.stdout.flush()
    except BrokenPipeError:
        return
    finally:
        supervisor.kill_all()


def main() -> int:
    """Serve the parent named by the first argument, then remove the folder named by the second."""
    try:
        serve(int(sys.argv[1]))
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
