"""`python -m tests.fuzz`: a search for bytes that break a target, each target in a process of its own.

With atheris the search goes by what the bytes reach in the code; without it, bytes are drawn by hypothesis. What is found is
written out, ready to be kept as a test.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.fuzz.kept import file_of, kept
from tests.fuzz.targets import TARGETS

_ROOT: Final = Path(__file__).parents[2]
_LONGEST: Final = 4096
_GRACE_S: Final = 120
"""What a process may take beyond the seconds of its search: the last input may be a slow one."""


def main() -> int:
    """Searches; the exit status is 1 where a target broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--target", action="append", choices=sorted(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="what the search begins with (default 1)")
    options = parser.parse_args()
    broken = [name for name in options.target or TARGETS if not _search(name, options.seconds, options.seed)]
    return 1 if broken else 0


def _search(name: str, seconds: int, seed: int) -> bool:
    print(f"==> {name}: {seconds} s", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        known, found = Path(folder) / "known", Path(folder) / "found"
        known.mkdir()
        found.mkdir()
        for number, (_, data) in enumerate(kept(name)):
            (known / str(number)).write_bytes(data)
        arguments = [str(known), f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={_LONGEST}"]
        arguments += [
            f"-artifact_prefix={found}/",
            "-timeout=30",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
        ]
        ended = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.engine", name, *arguments],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds + _GRACE_S,
            check=False,
        )
        said = (ended.stdout + ended.stderr).splitlines()
        for line in filter(_told if ended.returncode == 0 else _of_the_fault, said):
            print(f"    {line}")
        for crash in sorted(found.iterdir()):
            case = file_of(name, crash.read_bytes())
            case.parent.mkdir(parents=True, exist_ok=True)
            case.write_bytes(crash.read_bytes())
            print(f"    breaks it: {case.relative_to(_ROOT)}")
    print(
        f"    {'nothing found' if ended.returncode == 0 else 'BROKEN'} in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return ended.returncode == 0


def _told(line: str) -> bool:
    """Of what the engine says at its end, how much it tried and how far it came."""
    return "number_of_executed_units" in line or "new_units_added" in line or "without atheris" in line


def _of_the_fault(line: str) -> bool:
    """All but the steps of the search."""
    return bool(line) and not line.startswith(("#", "INFO", "stat::"))


if __name__ == "__main__":
    raise SystemExit(main())
