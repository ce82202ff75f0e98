"""A Containerfile without an engine: its stages, and the steps of one of them done in a folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

_CONTINUED = re.compile(r"\\\n\s*")
_TIMEOUT_S = 240.0


@dataclass(slots=True)
class Stage:
    """The instructions after one FROM, each as its word and the rest."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.steps if name == word]


def stages(text: str) -> list[Stage]:
    """The stages in their order; arguments before the first FROM are left out."""
    found: list[Stage] = []
    for line in _CONTINUED.sub(" ", text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append(Stage(rest))
        elif found:
            found[-1].steps.append((word, rest.strip()))
    return found


def build(stage: Stage, context: Path, root: Path, **arguments: str) -> None:
    """Do COPY and RUN as a builder would, with `root` in the place of `/` and this Python as the base's."""
    given: dict[str, str] = {}
    tools = root / "tools"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    at = root
    for word, rest in stage.steps:
        if word == "ARG":
            name, _, default = rest.partition("=")
            given[name] = arguments.get(name, default.strip('"'))
        elif word == "ENV":
            name, _, value = rest.partition("=")
            given[name] = value
        elif word == "WORKDIR":
            at = root / rest.lstrip("/")
            at.mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            _copy(rest, context, at)
        elif word == "RUN":
            _run(
                rest.replace("/opt/", f"{root}/opt/"), at, {**given, "PATH": f"{tools}:{os.environ['PATH']}"}
            )
        else:
            raise ValueError(f"nobody does {word} here")


def _copy(rest: str, context: Path, at: Path) -> None:
    *sources, target = shlex.split(rest)
    for source in sources:
        origin = context / source
        if origin.is_dir():
            # As a container's build: what is in the folder, not the folder.
            shutil.copytree(origin, at / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, at / target)


def _run(command: str, at: Path, environment: dict[str, str]) -> None:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "VIRTUAL_ENV", "PIP_"))
    }
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=at,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
