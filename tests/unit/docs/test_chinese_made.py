"""What is made by code in English is said in Chinese too, description by description; none is missing and none is left over."""

import pytest

from hack.pages import chinese


@pytest.mark.parametrize("name", chinese.PAGES)
def test_the_page_is_the_one_that_is_made_from_the_english_one(name: str) -> None:
    written = (chinese.FOLDER / f"{name}.md").read_text("utf-8")
    assert written == chinese.page(name), "run: python -m hack.pages.chinese"


def test_a_description_that_nobody_has_translated_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chinese.PAGES["settings"]()
    other = made.replace("The queue of pods that name none.", "The queue of all others.")
    monkeypatch.setattr(chinese, "PAGES", {"settings": lambda: other})
    with pytest.raises(chinese.WordsError, match=r"lacks: The queue of all others\."):
        chinese.page("settings")


def test_a_translation_of_what_is_no_more_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chinese.PAGES["metrics"]()
    monkeypatch.setattr(
        chinese, "PAGES", {"metrics": lambda: made.replace("1 while this process leads.", "")}
    )
    with pytest.raises(chinese.WordsError, match=r"not in English: \['1 while this process leads\.'\]"):
        chinese.page("metrics")
