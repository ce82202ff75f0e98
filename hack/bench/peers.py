"""Child processes that take orders by the line: the servers and the load maker."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson

_STOP_S: Final = 10.0


class BenchError(Exception):
    """A process that is measured, or that measures, did not do what it should; `str()` says what."""


class Peer:
    """A child process that answers each line on its standard input by a line; it ends when that is closed."""

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._name = " ".join((module, *arguments))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, message: object) -> None:
        """Writes one line."""
        assert self._process.stdin is not None, "opened as a pipe"
        self._process.stdin.write(orjson.dumps(message).decode() + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Waits for one line. Raises BenchError when the process has ended instead."""
        assert self._process.stdout is not None, "opened as a pipe"
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(f"{self._name} ended with exit status {self._process.wait(_STOP_S)}")
        return orjson.loads(line)

    def close(self) -> None:
        """Lets it end, and kills it if it does not."""
        try:
            self._process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@contextmanager
def peer(module: str, *arguments: str) -> Iterator[Peer]:
    """Runs `python -m module`; it has ended when the block is left."""
    child = Peer(module, *arguments)
    try:
        yield child
    finally:
        child.close()
