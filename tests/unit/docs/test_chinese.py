"""The pages in Chinese say what the English ones say: the same sections, commands, manifests, links, rows and names.

What is compared is what is the same in both languages, section by section; so a command that changes in one changes in the other.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
ENGLISH: Final = ROOT / "docs"
CHINESE: Final = ENGLISH / "zh"
NAMES: Final = sorted(page.name for page in CHINESE.glob("*.md"))

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(^|\s+)# .*$", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_ITEM = re.compile(r"^ *(?:[*-]|\d+\.) ", re.MULTILINE)
_ROW = re.compile(r"^ *\|.*$", re.MULTILINE)
_HAN = re.compile(r"[\u4e00-\u9fff]")

Target = tuple[Path, int]
"""A file in English, and the number of one of its headings; 0 is the whole page."""


@dataclass(frozen=True, slots=True)
class Section:
    """What stands below a heading, up to the next one, without its blocks of code."""

    level: int
    title: str
    text: str
    blocks: tuple[tuple[str, str], ...]
    """The language of each, and what stands in it but for comments."""


def sections(page: Path) -> list[Section]:
    """A page in order; what a block of code has that looks like a heading is none."""
    blocks: list[tuple[str, str]] = []

    def kept(block: re.Match[str]) -> str:
        blocks.append((block[2], _COMMENT.sub("", block[3])))
        return f"\0{len(blocks) - 1}\0"

    text = _BLOCK.sub(kept, page.read_text("utf-8"))
    found = list(_HEADING.finditer(text))
    assert text.startswith("# "), page
    ends = [*(heading.start() for heading in found[1:]), len(text)]
    return [
        Section(
            len(heading[1]),
            heading[2],
            re.sub(r"\0\d+\0", "", body := text[heading.end() : end]),
            tuple(blocks[int(number)] for number in re.findall(r"\0(\d+)\0", body)),
        )
        for heading, end in zip(found, ends, strict=True)
    ]


def targets(page: Path, text: str) -> Counter[Target]:
    """Where the links of a text lead, in English; the one to the page in the other language is left out."""
    found = Counter[Target]()
    for link in _LINK.findall(text):
        if "://" in link:
            found[Path(link), 0] += 1
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        number = headings(target).index(anchor) + 1 if anchor else 0
        if CHINESE in target.parents:
            target = ENGLISH / target.relative_to(CHINESE)
        if target.name == "README.zh.md":
            target = target.with_name("README.md")
        found[target, number] += 1
    own = ENGLISH / page.name
    del found[own, 0]
    return found


def headings(page: Path) -> list[str]:
    """The anchors of a page, as a reader's browser finds them."""
    titles = [title for _, title in _HEADING.findall(page.read_text("utf-8"))]
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def levels(page: Path) -> list[int]:
    return [section.level for section in sections(page)]


PAIRS: Final = [
    pytest.param(name, english, chinese, id=f"{name}-{english.title}")
    for name in NAMES
    if levels(ENGLISH / name) == levels(CHINESE / name)
    for english, chinese in zip(sections(ENGLISH / name), sections(CHINESE / name), strict=True)
]
"""Of pages that have the same sections; of others it could not be said which one belongs to which."""
each_section = pytest.mark.parametrize(("name", "english", "chinese"), PAIRS)


@pytest.mark.parametrize("name", NAMES)
def test_both_have_the_same_sections(name: str) -> None:
    english, chinese = (
        [(section.level, section.title) for section in sections(folder / name)]
        for folder in (ENGLISH, CHINESE)
    )
    assert levels(CHINESE / name) == levels(ENGLISH / name), f"{english}\n{chinese}"


@each_section
def test_its_commands_and_manifests_are_the_same(name: str, english: Section, chinese: Section) -> None:
    assert chinese.blocks == english.blocks, name


@each_section
def test_its_links_lead_to_the_same(name: str, english: Section, chinese: Section) -> None:
    assert targets(CHINESE / name, chinese.text) == targets(ENGLISH / name, english.text)


@each_section
def test_its_tables_name_the_same_in_each_row(name: str, english: Section, chinese: Section) -> None:
    def rows(section: Section) -> list[list[str]]:
        return [sorted(_CODE.findall(row)) for row in _ROW.findall(section.text)]

    assert rows(chinese) == rows(english), name


@each_section
def test_it_names_the_same_fields_settings_and_metrics(name: str, english: Section, chinese: Section) -> None:
    """What is set off may go on in the next line in English, where lines are short."""
    there, here = ({*_CODE.findall(" ".join(one.text.split()))} for one in (english, chinese))
    assert here == there, name


@each_section
def test_it_has_as_many_points(name: str, english: Section, chinese: Section) -> None:
    assert len(_ITEM.findall(chinese.text)) == len(_ITEM.findall(english.text)), name


@pytest.mark.parametrize("name", NAMES)
def test_each_page_leads_to_the_other_and_is_in_chinese(name: str) -> None:
    english, chinese = (folder.joinpath(name).read_text("utf-8") for folder in (ENGLISH, CHINESE))
    assert english.split("\n")[2] == f"[中文](zh/{name})"
    assert chinese.split("\n")[2] == f"[English](../{name})"
    assert not _HAN.search(english.replace("[中文]", ""))
    assert [
        section.title for section in sections(CHINESE / name) if not _HAN.search(section.title + section.text)
    ] == []


def test_the_first_pages_are_there() -> None:
    assert {*NAMES} >= {"index.md", "quickstart.md", "tasks.md", "troubleshooting.md"}
