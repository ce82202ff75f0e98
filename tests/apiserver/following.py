"""A page that is followed command by command: its files are written, its commands run, and what they print is what it says."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from hack.controlplane import ControlPlane, WaitError, wait_for
from hack.install import NAMESPACE

_ROOT: Final = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.-]+\.yaml)\n")
_ONCE = ("apply", "annotate", "delete", "patch", "set", "label", "create")
_TIMEOUT_S: Final = 60.0
"""For what a command is to show; an autoscaler looks every 15 seconds."""
_ANYTHING = "…"
"""In what a page says a command prints: whatever is there, in the line or, alone in one, in any number of lines."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the lines that it is to print."""

    text: str
    expected: tuple[str, ...]

    @property
    def changes(self) -> bool:
        """Whether it changes the cluster, so that it runs once; what another one shows may take a moment to be there."""
        words = shlex.split(self.text)
        return any(word in _ONCE for word in words) and "--dry-run=server" not in words

    def matches(self, printed: str) -> bool:
        lines = [f"{_squeezed(line)}\n" for line in printed.strip().splitlines()]
        return re.fullmatch("".join(map(_pattern, self.expected)), "".join(lines)) is not None


def files(page: str) -> dict[str, str]:
    """The manifests of a page by the file name in their first line."""
    found = ((_FILE.match(text), text) for kind, text in _BLOCK.findall(page) if kind == "yaml")
    return {named[1]: text for named, text in found if named}


def commands(page: str) -> Iterator[Command]:
    """The commands of its consoles, in their order."""
    for kind, text in _BLOCK.findall(page):
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *expected = part.rstrip("\n").split("\n")
                yield Command(command, tuple(expected))


def administrator(plane: ControlPlane, namespace: str, folder: Path) -> dict[str, str]:
    """An environment with both commands on the PATH, and a kubeconfig of an administrator in a namespace."""
    config = yaml.safe_load(plane.admin_kubeconfig.read_text("utf-8"))
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config), "utf-8")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(plane.binary("kubectl"))
    (programs / "cardquota").write_text(f'#!/bin/sh\nexec {sys.executable} -m cli "$@"\n', "utf-8")
    (programs / "cardquota").chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "PYTHONPATH": str(_ROOT),
    }


def run(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command in a folder, as a shell does, and return all that it prints."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    return done.stdout


def follow(page: str, folder: Path, environment: Mapping[str, str], installed_in: str) -> None:
    """Do what the page says in a folder. Raises AssertionError with what was printed where that is not what it says.

    The installation has a namespace beside the usual one, of which the page speaks, while an earlier one is leaving that.
    """
    for name, text in files(page).items():
        (folder / name).write_text(text, "utf-8")
    for command in commands(page):
        printed = ""

        def right(command: Command = command) -> bool:
            nonlocal printed
            printed = run(command.text, folder, environment).replace(installed_in, NAMESPACE)
            return command.matches(printed)

        try:
            done = right() if command.changes else wait_for(command.text, right, _TIMEOUT_S)
        except WaitError:
            done = False
        wanted = "\n".join(command.expected)
        assert done, f"$ {command.text}\nprints\n{printed}\nwhere the page says\n{wanted}"


def _pattern(line: str) -> str:
    if line.strip() == _ANYTHING:
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in _squeezed(line).split(_ANYTHING)) + r"\n"


def _squeezed(line: str) -> str:
    """Columns are as wide as their contents."""
    return " ".join(line.split())
