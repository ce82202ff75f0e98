"""A process whose wall clock is stepped: it shows that time, and counts what passes as before."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.chaos import stepped

_TOLD: Final = """
import sys, pathlib, os
from tests.chaos import stepped
stepped.make_steppable(pathlib.Path(sys.argv[1]))
import time
from datetime import UTC, datetime
for _ in sys.stdin:
    print(time.time(), time.time_ns() / 1e9, datetime.now(UTC).timestamp(), time.monotonic(), flush=True)
"""


def test_a_process_that_was_only_just_started_has_no_clock_to_be_stepped(tmp_path: Path) -> None:
    """Its file is there once it has come so far; `tests/chaos/clocks.py` passes it over until then."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as process:
        assert not stepped.can_step(tmp_path, process.pid)


def test_the_wall_clock_is_stepped_and_passing_time_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _TOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def told() -> list[float]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("now\n")
            process.stdin.flush()
            return [float(text) for text in process.stdout.readline().split()]

        before = told()
        assert stepped.can_step(tmp_path, process.pid)
        for seconds in (3600.0, -86_400.0, 0.0):
            stepped.step(tmp_path, process.pid, seconds)
            *walls, passed = (later - earlier for later, earlier in zip(told(), before, strict=True))
            assert all(abs(wall - passed - seconds) < 1 for wall in walls)
            assert 0 <= passed < 30
        process.stdin.close()
