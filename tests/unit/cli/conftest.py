"""Running commands as a shell would."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `cardquota ARGUMENTS` in this process; `stdin` is bytes or text."""
    for variable in [name for name in os.environ if name.startswith("CARDQUOTA_")]:
        monkeypatch.delenv(variable)

    def run_command(*arguments: object, stdin: bytes | str = b"") -> Outcome:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run_command


def spawn(*arguments: object, stdin: bytes = b"", cwd: Path = ROOT) -> Outcome:
    """Runs `python -m cli ARGUMENTS` as a process of its own, in a plain C locale."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "cli", *map(str, arguments)]
    done = subprocess.run(
        command, input=stdin, capture_output=True, timeout=60, env=environment, cwd=cwd, check=False
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
