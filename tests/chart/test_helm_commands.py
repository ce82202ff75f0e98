"""Every helm command that the pages show is one that helm takes, with values that the chart has."""

import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from hack.installation import rendering
from tests.unit.docs.test_pages import PAGES, ROOT

_SHOWN = re.compile(
    r"`(helm (?:install|upgrade|uninstall|test|get|rollback) cardquota[^`]*)`|^(?:\$ )?(helm .*)$",
    re.MULTILINE,
)
_COMMENT = re.compile(r" +#.*")


def shown() -> set[str]:
    """In blocks, a command that goes on in the next line in one, and in the text."""
    found = set[str]()
    for page in PAGES:
        text = _COMMENT.sub("", page.read_text("utf-8")).replace("\\\n", "")
        found |= {inline or block for inline, block in _SHOWN.findall(text)}
    return {" ".join(command.split()) for command in found}


COMMANDS = sorted(shown())


def values(command: str) -> list[str]:
    """What `--set` says."""
    words = shlex.split(command)
    return [after for word, after in pairwise(words) if word == "--set"]


@pytest.mark.parametrize("command", COMMANDS)
def test_helm_knows_its_flags(helm: Path, command: str) -> None:
    words = shlex.split(command)
    known = subprocess.run([helm, words[1], "--help"], capture_output=True, text=True, check=True).stdout
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert [flag for flag in flags if not re.search(rf"(^|[ ,]){flag}[ ,]", known, re.MULTILINE)] == []


@pytest.mark.parametrize("command", [command for command in COMMANDS if values(command)])
def test_the_chart_takes_its_values(helm: Path, command: str) -> None:
    chart = ROOT / "charts" / "cardquota"
    sets = [f"--set={value}" for value in values(command)]
    objects = yaml.safe_load_all(rendering.helm(helm, "template", "cardquota", str(chart), *sets))
    assert [thing for thing in objects if thing]


def test_there_are_commands_to_look_at() -> None:
    assert {shlex.split(command)[1] for command in COMMANDS} >= {"install", "upgrade", "uninstall", "test"}
    assert any(values(command) for command in COMMANDS)
