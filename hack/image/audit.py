"""`make audit`: asks PyPI for known vulnerabilities of what goes into the image; the licences are in the image's SBOM.

Exit status 0: all was asked about, and nothing is known. 1: something is known. 2: something could not be asked about, so nobody
knows; pip-audit alone would stop at the first such package, or call it fine.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.image.lock import LOCKS, ROOT

_TIMEOUT_S = 300.0


class AuditError(Exception):
    """The auditor itself failed; the message is what it said last."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered about the packages of one lock file."""

    lock: str
    asked: int
    known: Sequence[str]
    """`name version: vulnerability, mended in ...`."""
    unasked: Mapping[str, str]
    """Why a package could not be asked about, by its name."""

    def lines(self) -> Iterator[str]:
        """Told in words."""
        yield f"{self.lock}: {self.asked} packages asked about, {len(self.known)} vulnerabilities known"
        for line in self.known:
            yield f"  {line}"
        if self.unasked:
            yield f"  {len(self.unasked)} could NOT be asked about, nothing is known of them:"
            for why in self.unasked.values():
                yield f"    {why}"


def read(lock: str, told: Mapping[str, Any]) -> Answer:
    """What pip-audit tells of a lock file in JSON."""
    asked, known, unasked = 0, [], {}
    for one in told["dependencies"]:
        if "skip_reason" in one:
            unasked[one["name"]] = one["skip_reason"]
            continue
        asked += 1
        for found in one["vulns"]:
            mended = ", ".join(found["fix_versions"]) or "no version yet"
            known.append(f"{one['name']} {one['version']}: {found['id']}, mended in {mended}")
    return Answer(lock, asked, known, unasked)


def ask(program: Path, lock: str) -> Answer:
    """Has pip-audit ask. Raises `AuditError`."""
    line = [
        str(program),
        "--require-hashes",
        "--disable-pip",
        "--progress-spinner=off",
        "--format=json",
        "-r",
    ]
    try:
        done = subprocess.run(
            [*line, lock], cwd=ROOT, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise AuditError(f"{lock}: no answer within {_TIMEOUT_S:.0f} s") from error
    try:
        return read(lock, json.loads(done.stdout))
    except (json.JSONDecodeError, KeyError) as error:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise AuditError(f"{lock}: {said[-1]}") from error


def main(arguments: list[str] | None = None) -> int:
    """Ask about every lock file; an exit status."""
    parser = argparse.ArgumentParser(prog="python -m hack.image.audit", description=__doc__)
    parser.add_argument("program", type=Path, help="where pip-audit is")
    options = parser.parse_args(arguments)
    try:
        answers = [ask(options.program, lock) for lock in LOCKS]
    except (AuditError, OSError) as error:
        print(f"error: the audit failed: {error}", file=sys.stderr)
        return 2
    for answer in answers:
        print(*answer.lines(), sep="\n")
    if any(answer.known for answer in answers):
        return 1
    if any(answer.unasked for answer in answers):
        print(
            "error: not everything could be asked about; PyPI's data is not to be had here", file=sys.stderr
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
