"""The pages of docs/zh that are made from English ones piece by piece: `python -m hack.pages.chinese` writes them.

What is translated stands in hack/pages/zh, a file for each page: a paragraph, heading, point, cell or comment in English, and below
it the same in Chinese behind `= ` (nothing but `=` where it is the same). Nothing may be missing there, nor left over, so whoever
changes a description of a setting or a metric has to say it in Chinese as well.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from hack import metrics_reference
from hack.pages import cards, settings, workloads

FOLDER: Final = Path(__file__).parents[2] / "docs" / "zh"
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "cards": cards.page,
    "metrics": metrics_reference.render,
    "rights": partial(FOLDER.parent.joinpath("rights.md").read_text, "utf-8"),
    "security": partial(FOLDER.parent.joinpath("security.md").read_text, "utf-8"),
    "settings": settings.page,
    "workloads": workloads.page,
}
"""Those in English, by the names of their files."""

_CODE: Final = re.compile(r"`[^`\n]+`")
_CELL: Final = re.compile(r"(?<!\\)\|")
_BEGIN: Final = re.compile(r"^(#+ |[-*] )?(.*)$", re.DOTALL)
_VOLCANO: Final = re.compile(r"^(.*) Volcano's key: (.*)\.$")
_COMMENT: Final = re.compile(r"^(.*\s)# (.*)$")
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


def page(name: str) -> str:
    """The page in Chinese. Raises WordsError."""
    known = words(name)
    unused = set(known)

    def say(english: str) -> str:
        plain = " ".join(english.split())
        if not re.search("[A-Za-z]", _CODE.sub("", plain)):
            return plain
        unused.discard(plain)
        if plain not in known:
            raise WordsError(f"hack/pages/zh/{name}.txt lacks: {plain}")
        return known[plain]

    text = "\n".join(_blocks(PAGES[name](), say)).replace(f"[中文](zh/{name}.md)", f"[English](../{name}.md)")
    if unused:
        raise WordsError(f"hack/pages/zh/{name}.txt has what is not in English: {sorted(unused)}")
    return text + "\n"


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
        elif not line or line.startswith("[中文]"):
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
    for name in PAGES:
        FOLDER.joinpath(f"{name}.md").write_text(page(name), "utf-8")


if __name__ == "__main__":
    main()
