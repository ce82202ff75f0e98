"""docs/rights.md is what the chart's roles say, right by right."""

from pathlib import Path

from hack.pages.rights import PAGE, page


def test_the_page_is_the_one_that_is_made_from_the_chart(helm: Path) -> None:
    assert PAGE.read_text("utf-8") == page(helm), "run: python -m hack.pages.rights"


def test_it_has_every_account_and_what_a_value_adds(helm: Path) -> None:
    sections = page(helm).split("\n## ")[1:]
    assert [section.count("\n| ") > 1 for section in sections] == [True] * 6
    assert "delete" not in sections[1], "by default the controller deletes nothing"
    assert "| cluster | `pods` |  | get, list, watch, patch, delete |" in sections[-1]
