"""`python -m hack.unsteady`: once more those tests of the last run that failed, if they are few and of the real control plane.

For continuous integration alone, after `make test`: there a machine that stands still for seconds fails a test that waits for
other processes, and the change it judges waits for nothing. A test that passes at the second try is named as unsteady, which is a
fault to be mended; what fails twice, fails. `make test` gives nothing a second try.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MOST: Final = 3
"""More than so many failures are no bad luck."""
FOLDERS: Final = ("tests/apiserver/", "tests/adversary/")
"""Where tests wait for other processes; what is wrong elsewhere is wrong each time."""
_RECORD: Final = Path(".pytest_cache/v/cache/lastfailed")
_PASSED: Final = 0


def why_not(failed: Iterable[str]) -> str:
    """Why these tests, by their node ids, get no second try; "" if they do."""
    failed = list(failed)
    if not failed:
        return "no test is on record as failed"
    if len(failed) > MOST:
        return f"{len(failed)} tests failed, and no more than {MOST} get a second try"
    elsewhere = [test for test in failed if not test.startswith(FOLDERS)]
    return f"{elsewhere[0]} waits for no other process" if elsewhere else ""


def failed_tests(record: Path = _RECORD) -> list[str]:
    """The node ids of those that failed in the last run of pytest in this folder."""
    return sorted(json.loads(record.read_text("utf-8"))) if record.exists() else []


def main() -> int:
    """Exit status: that of the second try, 1 without one."""
    failed = failed_tests()
    reason = why_not(failed)
    if reason:
        print(f"no second try: {reason}", file=sys.stderr)
        return 1
    print("a second try:", *failed, sep="\n  ", flush=True)
    status = subprocess.run([sys.executable, "-m", "pytest", "-n0", *failed], check=False).returncode
    if status == _PASSED:
        print("unsteady, and to be mended:", *failed, sep="\n  ")
    return status


if __name__ == "__main__":
    sys.exit(main())
