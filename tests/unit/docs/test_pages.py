"""The pages: every one can be found from the first, every link leads somewhere, and every command that they show exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.main import parser

ROOT = Path(__file__).parents[3]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    ROOT / "charts" / "cardquota" / "README.md",
    *sorted((ROOT / "examples").rglob("*.md")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```(?:sh|console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GRAMMAR = re.compile(r"[\[\]|<>…]|\.\.\.|\b[A-Z]{3,}\b")
"""What a command has that is a synopsis, with other commands around it or placeholders in it."""


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where each link to a file of the project leads: the file, and the anchor in it."""
    for target in _LINK.findall(page.read_text("utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def anchors(page: Path) -> set[str]:
    """Those of its headings, as a reader's browser finds them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> Iterator[str]:
    """What the pages show of our command, word for word, but for synopses."""
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text("utf-8")):
            for line in block.splitlines():
                found = re.match(r"(?:\$ )?(cardquota [^#]*)", line)
                if found and not _GRAMMAR.search(found[1]):
                    yield found[1].strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(target), f"{target} has no heading #{anchor}"


def test_every_page_is_found_from_the_first() -> None:
    found, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in found and page.suffix == ".md":
            found.add(page)
            ahead += [target for target, _ in links(page)]
    assert [page for page in (ROOT / "docs").rglob("*.md") if page not in found] == []


@pytest.mark.parametrize("command", sorted({*commands()}))
def test_every_command_that_is_shown_can_be_given(command: str) -> None:
    """Options and their values too; it is not run."""
    given = shlex.split(command)[1:]
    if given == ["--version"]:
        with pytest.raises(SystemExit, match="0"):
            parser().parse_args(given)
        return
    try:
        parser().parse_args(given)
    except CommandError as error:
        pytest.fail(str(error))


def test_there_are_commands_to_look_at() -> None:
    assert len({*commands()}) > 10
