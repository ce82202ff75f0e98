"""`python -m hack.mutants`: takes each guard out in a copy of the tree, and runs the tests that have to notice.

First the same tests run on the copy as it is: a test that fails anyway notices nothing. The exit status is 1 where a guard is
missed by nobody.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hack.mutants.guard import Guard
from hack.mutants.guards import GUARDS

_ROOT: Final = Path(__file__).parents[2]
_LIMIT_S: Final = 900
_FAILED: Final = 1
"""Of pytest: tests ran, and some failed. Anything else is a mistake of whoever wrote the table."""


def main() -> int:
    """One line for each guard: who noticed, and after how long."""
    parser = argparse.ArgumentParser(prog="python -m hack.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only guards with this in their name")
    options = parser.parse_args()
    guards = [guard for guard in GUARDS if options.only in guard.name]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        _copy(tree)
        tests = sorted({test for guard in guards for test in guard.tests})
        status, seconds, _ = _run(tree, tests)
        if status:
            print(f"error: these tests fail as it is (status {status})", file=sys.stderr)
            return 2
        print(f"as it is: {len(tests)} files of tests pass in {seconds:.0f} s", flush=True)
        missed = [guard for guard in guards if not _noticed(tree, guard)]
    print(f"{len(guards) - len(missed)} of {len(guards)} guards: a test fails when they are gone")
    return 1 if missed else 0


def _copy(tree: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=_ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source = _ROOT / name
        if source.is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, tree / name)


def _noticed(tree: Path, guard: Guard) -> bool:
    file = tree / guard.file
    whole = file.read_text("utf-8")
    if whole.count(guard.old) != 1:
        raise SystemExit(
            f"error: {guard.name}: {guard.file} has what is to be replaced {whole.count(guard.old)} times"
        )
    file.write_text(whole.replace(guard.old, guard.new), "utf-8")
    try:
        status, seconds, first = _run(tree, guard.tests)
    finally:
        file.write_text(whole, "utf-8")
    noticed = status == _FAILED
    said = first if noticed else f"NOBODY (status {status})"
    print(f"{guard.name} | {guard.file} | {said} | {seconds:.0f} s", flush=True)
    return noticed


def _run(tree: Path, tests: Sequence[str]) -> tuple[int, float, str]:
    """Status of pytest, seconds, and the first test that failed."""
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", ended.stdout, re.MULTILINE)
    first = failed[1] if failed is not None else ""
    return ended.returncode, time.monotonic() - started, first


if __name__ == "__main__":
    raise SystemExit(main())
