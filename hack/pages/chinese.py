"""The pages in Chinese that are made from English ones piece by piece: `python -m hack.pages.chinese` writes them.

What is translated stands in hack/pages/zh, a file for each page and one for all examples: a paragraph, heading, point, cell or comment
in English, and below it the same in Chinese behind `= ` (nothing but `=` where it is the same). Nothing may be missing there, nor
left over, so whoever changes a description of a setting or a metric has to say it in Chinese as well.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack import metrics_reference
from hack.pages import cards, settings, workloads

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "zh"


@dataclass(frozen=True, slots=True)
class Page:
    """A page in both languages; paths are relative to the root of the project."""

    words: str
    """The name of the file with what is translated, of several pages where they are alike."""
    chinese: str
    english: Callable[[], str]


def _stored(path: str) -> Callable[[], str]:
    return lambda: ROOT.joinpath(path).read_text("utf-8")


def _document(name: str, english: Callable[[], str] | None = None) -> Page:
    return Page(name, f"docs/zh/{name}.md", english or _stored(f"docs/{name}.md"))


def _beside(words: str, folder: str) -> Page:
    """A README with its twin in the same folder."""
    return Page(words, f"{folder}/README.zh.md", _stored(f"{folder}/README.md"))


def _examples() -> Iterator[Page]:
    yield _beside("examples", "examples")
    for path in sorted(ROOT.joinpath("examples").glob("*/README.md")):
        yield _beside("examples", f"examples/{path.parent.name}")


PAGES: Final[Mapping[str, Page]] = {
    page.chinese: page
    for page in (
        _document("cards", cards.page),
        _document("commands"),
        _document("metrics", metrics_reference.render),
        _document("rights"),
        _document("security"),
        _document("settings", settings.page),
        _document("workloads", workloads.page),
        _beside("chart", "charts/cardquota"),
        *_examples(),
    )
}
"""By the path of what is made."""

_CODE: Final = re.compile(r"`[^`\n]+`")
_CELL: Final = re.compile(r"(?<!\\)\|")
_BEGIN: Final = re.compile(r"^(#+ |[-*] )?(.*)$", re.DOTALL)
_VOLCANO: Final = re.compile(r"^(.*) Volcano's key: (.*)\.$")
_COMMENT: Final = re.compile(r"^(.*\s)# (.*)$")
_TWIN: Final = re.compile(r"\[中文\]\((?:zh/(.*)|README\.zh\.md)\)")
_SOURCES: Final = "Looked up in:"
"""What is listed below it are names of documents, in the language in which these are."""


class WordsError(ValueError):
    """What is to be said in Chinese is not, or what is said is nowhere in English; `str()` says what."""


def words(name: str) -> dict[str, str]:
    """What is translated of a page, English -> Chinese."""
    found: dict[str, str] = {}
    english = ""
    for line in Path(__file__).parent.joinpath("zh", f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("="):
            found[english] = line[2:] or english
        elif line:
            english = line
    return found


def page(made: Page, used: set[str] | None = None) -> str:
    """The page in Chinese; the pieces of its words that it has are added to `used`. Raises WordsError."""
    known = words(made.words)
    used = set() if used is None else used

    def say(english: str) -> str:
        plain = " ".join(english.split())
        if not re.search("[A-Za-z]", _CODE.sub("", plain)):
            return plain
        used.add(plain)
        if plain not in known:
            raise WordsError(f"hack/pages/zh/{made.words}.txt lacks: {plain}")
        return known[plain]

    return "\n".join(_blocks(made.english(), say)) + "\n"


def check(pages: Iterable[Page]) -> None:
    """Look whether all that is translated is in the pages in English. Raises WordsError."""
    used: dict[str, set[str]] = {}
    for made in pages:
        page(made, used.setdefault(made.words, set()))
    for name, found in used.items():
        if unused := words(name).keys() - found:
            raise WordsError(f"hack/pages/zh/{name}.txt has what is not in English: {sorted(unused)}")


def _blocks(english: str, say: Callable[[str], str]) -> Iterator[str]:
    """The page in lines: one for each paragraph, point and row, and code as it stands but for its comments."""
    sources = False
    text: list[str] = []

    def told() -> Iterator[str]:
        if text:
            begin = _BEGIN.match("\n".join(text))
            assert begin is not None
            yield (begin[1] or "") + (begin[2] if sources else say(begin[2]))
            text.clear()

    code = False
    for line in english.rstrip("\n").split("\n"):
        if code or line.startswith("```"):
            yield from told()
            code = code != line.startswith("```")
            comment = _COMMENT.match(line)
            yield line if comment is None else f"{comment[1]}# {say(comment[2])}"
        elif line.startswith("|"):
            yield from told()
            cells = _CELL.split(line)[1:-1]
            yield f"|{'|'.join(f' {_cell(cell.strip(), say)} ' if cell.strip() else cell for cell in cells)}|"
        elif link := _TWIN.fullmatch(line):
            yield from told()
            yield f"[English](../{link[1]})" if link[1] else "[English](README.md)"
        elif not line:
            yield from told()
            yield line
        else:
            if line.startswith(("#", "- ", "* ")):
                yield from told()
            sources = sources and line.startswith("- ")
            text.append(line.strip())
            if line == _SOURCES:
                yield from told()
                sources = True
    yield from told()


def _cell(english: str, say: Callable[[str], str]) -> str:
    volcano = _VOLCANO.match(english)
    if volcano is None:
        return say(english)
    return say(volcano[1]) + say("Volcano's key: KEY.").replace("KEY", volcano[2])


def main() -> None:
    """Write the pages."""
    check(PAGES.values())
    for path, made in PAGES.items():
        ROOT.joinpath(path).write_text(page(made), "utf-8")


if __name__ == "__main__":
    main()
