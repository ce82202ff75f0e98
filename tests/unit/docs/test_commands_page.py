"""docs/commands.md has every command and every flag that the parser takes, and none that it does not; the short page every command."""

import argparse
import re
from pathlib import Path

import pytest

from cli.main import parser

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "commands.md").read_text("utf-8")
COMMON, *_SECTIONS = re.split(r"^## (?=check$)", PAGE, maxsplit=1, flags=re.MULTILINE)
SECTIONS = {
    name: text
    for title, _, text in (
        part.partition("\n") for part in re.split(r"^## ", _SECTIONS[0], flags=re.MULTILINE)
    )
    for name in title.split(" and ")
}
"""What is said of each command, and before them of several."""
_OTHERS = {"--overwrite"}
"""Flags of kubectl."""


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [one for one in parser()._actions if isinstance(one, argparse._SubParsersAction)]
    return dict(found.choices)


def flags(command: argparse.ArgumentParser) -> list[tuple[str, ...]]:
    """Each with all its spellings."""
    found = [tuple(one.option_strings) for one in command._actions]
    return [one for one in found if one and "--help" not in one]


def names(text: str, flag: str) -> bool:
    return re.search(rf"(?<![\w-]){flag}(?![\w-])", text) is not None


@pytest.mark.parametrize("command", commands())
def test_every_flag_stands_with_its_command_or_with_what_is_said_of_several(command: str) -> None:
    text = COMMON + SECTIONS.get(command, "")
    missing = [one for one in flags(commands()[command]) if not any(names(text, flag) for flag in one)]
    assert missing == []


@pytest.mark.parametrize("command", commands())
def test_every_command_is_there(command: str) -> None:
    assert re.search(rf"cardquota {command}\b|`{command}\b", PAGE)


def test_no_section_and_no_flag_is_made_up() -> None:
    known = {flag for one in commands().values() for spellings in flags(one) for flag in spellings}
    assert {*re.findall(r"(?<![\w-])--[a-z][\w-]+", PAGE)} - known - _OTHERS - {
        "--version",
        "--help",
    } == set()
    assert {*SECTIONS} - {*commands()} == set()
