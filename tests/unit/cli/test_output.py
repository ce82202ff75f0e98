"""Tables and text for terminals."""

import json

import pytest

from cli import output


def test_columns_are_aligned_and_nothing_trails() -> None:
    table = output.table(("NAME", "QUOTA", "NOTE"), [("a", "10", ""), ("longer-name", "5", "x")])
    assert table.splitlines() == [
        "NAME          QUOTA   NOTE",
        "a             10      <none>",
        "longer-name   5       x",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert output.table(("A", "B"), []) == "A   B"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é😀", "plain é😀"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202e", "\\u202e"),
        ("\udc80", "\\udc80"),
    ],
)
def test_nothing_from_an_object_moves_the_cursor(text: str, shown: str) -> None:
    assert output.printable(text) == shown


def test_json_keeps_order_and_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"z": "é", "a": [1]})
    text = capsys.readouterr().out
    assert "é" in text
    assert list(json.loads(text)) == ["z", "a"]
