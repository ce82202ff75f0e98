"""A stand-in for Go: a shell script that writes what it is asked to build and keeps a list of its calls."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.toolchain import Reporter

# $CALLS gets the package of each build; a package that contains $BROKEN does not compile; a build lasts until $AWAITED is there,
# for ten seconds at most, where that names a file.
_SCRIPT = """#!/bin/sh
if [ "$1" = env ]; then echo "$VERSION"; exit 0; fi
for last; do :; done
echo "$last" >> "$CALLS"
echo "$CGO_ENABLED $GOOS $GOARCH $GOPROXY" >> "$CALLS.env"
tries=0
while [ -n "$AWAITED" ] && [ ! -e "$AWAITED" ] && [ $tries -lt 500 ]; do sleep 0.02; tries=$((tries + 1)); done
case "$last" in *"$BROKEN"*) echo "go: downloading noise"; echo "main.go:1: undefined: x" >&2; exit 1;; esac
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\n' > "$2"
chmod +x "$2"
"""


@dataclass(frozen=True, slots=True)
class FakeGo:
    environ: Mapping[str, str]
    calls_file: Path
    awaited: Path

    def calls(self) -> list[str]:
        return self.calls_file.read_text().split() if self.calls_file.exists() else []

    def until_said(self, words: str, times: int, lines: list[str]) -> tuple[Mapping[str, str], Reporter]:
        """An environment whose build lasts until such a line was written so often, and a reporter in a hurry that writes them."""

        def say(line: str) -> None:
            lines.append(line)
            if sum(words in each for each in lines) >= times:
                self.awaited.touch()

        reporter = Reporter(say)
        assert reporter.interval_s == 10
        reporter.interval_s = 0.05
        return {**self.environ, "AWAITED": str(self.awaited)}, reporter


def executable(path: Path, content: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    go = executable(tmp_path / "path" / "go", _SCRIPT)
    calls = tmp_path / "calls"
    environ = {
        "PATH": f"{go.parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GOPROXY": "the-users-own",
        "VERSION": "go1.26.0",
        "CALLS": str(calls),
        "BROKEN": "nothing-is-broken",
        "AWAITED": "",
    }
    monkeypatch.setenv("VERSION", environ["VERSION"])
    return FakeGo(environ, calls, tmp_path / "awaited")
