"""What is made by code in English is said in Chinese too, description by description; none is missing and none is left over."""

from dataclasses import replace

import pytest

from hack.pages import chinese

SETTINGS, METRICS = (chinese.PAGES[f"docs/zh/{name}.md"] for name in ("settings", "metrics"))


@pytest.mark.parametrize("path", chinese.PAGES)
def test_the_page_is_the_one_that_is_made_from_the_english_one(path: str) -> None:
    written = (chinese.ROOT / path).read_text("utf-8")
    assert written == chinese.page(chinese.PAGES[path]), "run: python -m hack.pages.chinese"


def test_nothing_is_translated_that_is_not_in_english() -> None:
    chinese.check(chinese.PAGES.values())


def test_a_description_that_nobody_has_translated_is_an_error() -> None:
    other = SETTINGS.english().replace("The queue of pods that name none.", "The queue of all others.")
    with pytest.raises(chinese.WordsError, match=r"lacks: The queue of all others\."):
        chinese.page(replace(SETTINGS, english=lambda: other))


def test_a_translation_of_what_is_no_more_is_an_error() -> None:
    other = METRICS.english().replace("1 while this process leads.", "")
    with pytest.raises(chinese.WordsError, match=r"not in English: \['1 while this process leads\.'\]"):
        chinese.check([replace(METRICS, english=lambda: other)])


@pytest.mark.parametrize(
    "path",
    sorted(path.relative_to(chinese.ROOT).as_posix() for path in chinese.ROOT.glob("examples/**/README.md")),
)
def test_every_example_is_told_in_both_and_leads_to_the_other(path: str) -> None:
    """Commands, manifests and what is to be seen are not translated, so they are the same."""
    twin = path.replace("README.md", "README.zh.md")
    assert twin in chinese.PAGES
    for name, link in ((path, "[中文](README.zh.md)"), (twin, "[English](README.md)")):
        assert (chinese.ROOT / name).read_text("utf-8").split("\n")[2] == link
