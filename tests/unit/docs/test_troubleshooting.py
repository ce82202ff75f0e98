"""docs/troubleshooting.md says of every reason what the catalogue says, and calls unused what is unused."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import catalogue, reasons

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
RESERVED = "## Codes that are reserved"

_ROW = re.compile(r"^\| `(\w+)` \| .* \|$", re.MULTILINE)


def row(reason: catalogue.Reason) -> str:
    """The line of a table that the page must have."""
    meaning, remedy = (text.replace("|", r"\|") for text in (reason.meaning, reason.remedy))
    return f"| `{reason.code}` | {meaning} | {remedy} |"


def used_codes() -> Iterator[str]:
    """Every code that a module of the product refers to, as `reasons.NAME`."""
    itself = {*(ROOT / "core" / "catalogue").glob("*.py")}
    for package in ("core", "kube", "webhook", "controller", "cli"):
        for file in set((ROOT / package).rglob("*.py")) - itself:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                match node:
                    case ast.Attribute(value=ast.Name(id="reasons"), attr=name) if name.isupper():
                        code = getattr(reasons, name)
                        if isinstance(code, str):
                            yield code


@pytest.mark.parametrize("reason", catalogue.CATALOGUE.values(), ids=lambda reason: reason.code)
def test_every_reason_has_its_line_word_for_word(reason: catalogue.Reason) -> None:
    assert row(reason) in PAGE.splitlines()


def test_no_reason_has_two_lines_and_none_is_made_up() -> None:
    assert sorted(_ROW.findall(PAGE)) == sorted(catalogue.CATALOGUE)


def test_codes_are_called_reserved_while_nothing_uses_them() -> None:
    reserved = set(_ROW.findall(PAGE.partition(RESERVED)[2]))
    assert reserved == catalogue.CATALOGUE.keys() - set(used_codes())


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text("utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
