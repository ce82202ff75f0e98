"""docs/workloads.md is what the table of workloads says, row by row."""

from core.workloads import TABLE
from hack.pages.workloads import PAGE, page


def test_the_page_is_the_one_that_is_made_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m hack.pages.workloads"


def test_every_kind_has_its_row() -> None:
    lines = page().splitlines()
    for row in TABLE:
        assert sum(line.startswith(f"| {row.kind} (`{row.group}`) |") for line in lines) == 1
