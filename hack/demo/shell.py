"""Runs the commands of the demo, shows them as they would be typed, and checks what they print."""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.demo.terminal import Terminal

TIMEOUT_S = 60.0

_POLL_S = 0.2


class DemoError(Exception):
    """Something did not happen as told; the message says what was expected and what was seen."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended and what it printed, both streams in their order."""

    status: int
    output: str


class Shell:
    """Commands in one folder. `programs` says what stands behind the first word of a command.

    `environ` is added to this process's environment. Every method raises `DemoError` when a command does not end.
    """

    def __init__(
        self,
        terminal: Terminal,
        folder: Path,
        programs: Mapping[str, Sequence[str]],
        environ: Mapping[str, str],
    ) -> None:
        self.terminal = terminal
        self._folder = folder
        self._programs = programs
        self._environ = {**os.environ, **environ}

    def file(self, name: str, *, only_first: bool = False) -> None:
        """Show a manifest, or the first of its documents."""
        text = (self._folder / name).read_text("utf-8")
        first, separator, _ = text.partition("---\n")
        lines = first.count("\n")
        short = only_first and separator
        self.terminal.command(f"head -n {lines} {name}" if short else f"cat {name}")
        self.terminal.output(first if short else text)

    def run(self, line: str, *, status: int = 0) -> str:
        """Show a command and its output, and return that; any other exit status than `status` is a `DemoError`."""
        self.terminal.command(line)
        result = self.quietly(line)
        self.terminal.output(result.output)
        if result.status != status:
            raise DemoError(f"`{line}` ended with exit status {result.status}, not {status}")
        return result.output

    def until(self, what: str, line: str, check: Callable[[str], bool], timeout_s: float = TIMEOUT_S) -> str:
        """Run a command until `check` accepts its output, show the command with that output, and return it.

        After `timeout_s` a `DemoError` says what was waited for and what the command printed last.
        """
        self.terminal.step(f"waiting until {what}")
        deadline = time.monotonic() + timeout_s
        while True:
            result = self.quietly(line)
            if result.status == 0 and check(result.output):
                break
            if time.monotonic() > deadline:
                raise DemoError(
                    f"not within {timeout_s:.0f} s: {what}; `{line}` printed last:\n{result.output.rstrip()}"
                )
            time.sleep(_POLL_S)
        self.terminal.command(line)
        self.terminal.output(result.output)
        return result.output

    def quietly(self, line: str) -> Result:
        """Run a command and show nothing."""
        program, *arguments = shlex.split(line)
        try:
            done = subprocess.run(
                [*self._programs[program], *arguments],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise DemoError(f"`{line}` did not end within {TIMEOUT_S:.0f} s") from None
        return Result(done.returncode, done.stdout)
