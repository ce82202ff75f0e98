"""The pages: every one can be found from the first, every link leads somewhere, and every command that they show exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.main import parser
from tests.builders import documents

ROOT = Path(__file__).parents[3]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / "charts" / "cardquota").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```(?:sh|console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(cardquota [^`\n]+)`")
_FENCE = re.compile(r"^( *)```(\S*)", re.MULTILINE)
_LANGUAGES = {"", "sh", "console", "yaml", "mermaid"}
"""Commands and what they print, objects and settings, drawings: each has tests that look at the blocks of that kind."""
_NOT_PAGES = {".git", ".venv", "build", "node_modules"}
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


def mentions() -> Iterator[str]:
    """What the pages say of our command in the text, where arguments may be left out."""
    for page in PAGES:
        yield from _INLINE.findall(page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(target), f"{target} has no heading #{anchor}"


def test_no_page_is_left_out() -> None:
    """A page in a new place is one that these tests look at."""
    folders = [folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name not in _NOT_PAGES]
    there = {page for folder in folders for page in folder.rglob("*.md") if not {*page.parts} & _NOT_PAGES}
    hidden = {page for page in there if any(part.startswith(".") for part in page.relative_to(ROOT).parts)}
    assert sorted({*ROOT.glob("*.md")} | there - hidden) == sorted(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_of_a_kind_that_a_test_looks_at(page: Path) -> None:
    """None is indented either, for the tests find them at the beginning of a line."""
    fences = _FENCE.findall(page.read_text("utf-8"))
    assert [fence for fence in fences if fence[0] or fence[1] not in _LANGUAGES] == []
    assert len(fences) % 2 == 0


def test_every_page_with_manifests_has_them_tried() -> None:
    """Those in Chinese have the blocks of the English ones; examples are followed, command by command."""
    shown = {page for page in PAGES if "\n```yaml\n" in page.read_text("utf-8")}
    others = {page for page in shown if page.parent.name == "zh" or ROOT / "examples" in page.parents}
    assert shown - others <= {*documents.PAGES}


def test_every_page_is_found_from_the_first() -> None:
    """Which is docs/index.md: whoever is there needs no other way in."""
    found, ahead = set[Path](), [ROOT / "docs" / "index.md"]
    while ahead:
        page = ahead.pop()
        if page not in found and page.suffix == ".md":
            found.add(page)
            ahead += [target for target, _ in links(page)]
    assert [page for page in (ROOT / "docs").rglob("*.md") if page not in found] == []


@pytest.mark.parametrize(
    ("page", "said", "way_out"),
    [
        (
            "docs/index.md",
            "goes through with a warning, and no card quota counts it",
            "let-nobody-use-a-gpu-without-quota",
        ),
        ("docs/zh/index.md", "任何卡配额都不会统计它", "不允许绕过配额使用-gpu"),
        ("README.md", "no card quota counts it", "cards-without-a-name"),
    ],
)
def test_the_first_screen_says_what_is_let_through_by_default(page: str, said: str, way_out: str) -> None:
    """With what to do about it; a screen has thirty lines."""
    screen = " ".join((ROOT / page).read_text("utf-8").splitlines()[:30])
    assert said in screen
    assert f"#{way_out})" in screen


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


@pytest.mark.parametrize("mention", sorted({*mentions()}))
def test_every_command_that_is_mentioned_has_its_flags(
    mention: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = mention.split()[1:]
    named = words[:1] if not words[0].startswith("-") else []
    with pytest.raises(SystemExit, match="0"):
        parser().parse_args([*named, "--help"])
    known = capsys.readouterr().out
    flags = [word for word in words if word.startswith("-")]
    assert [flag for flag in flags if not re.search(rf"(^|[ ,\[]){flag}\b", known, re.MULTILINE)] == []


def test_there_are_commands_to_look_at() -> None:
    assert len({*commands()}) > 10
