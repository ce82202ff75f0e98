"""Tables and text for terminals."""

import json

import pytest

from cli import documents, output


def test_columns_are_aligned_and_nothing_trails() -> None:
    table = output.table(("NAME", "QUOTA", "NOTE"), [("a", "10", ""), ("longer-name", "5", "x")])
    assert table.splitlines() == [
        "NAME          QUOTA   NOTE",
        "a             10      <none>",
        "longer-name   5       x",
    ]


@pytest.mark.parametrize(
    ("cell", "columns"),
    [
        ("q", 1),
        ("队列", 4),
        ("ﾃﾞ", 2),
        ("\uff21", 2),
        ("é", 1),
        ("e\u0301", 1),
        ("か\u3099", 2),
        ("\u200b", 6),  # written out as \\u200b
        ("🙂", 2),
    ],
)
def test_columns_stand_below_each_other_whatever_is_written_in_them(cell: str, columns: int) -> None:
    """A terminal gives two columns to some letters, and none to those that go on top of the one before."""
    table = output.table(("NAME", "NOTE"), [(cell, "x"), ("plain-name", "y")])
    wide, plain = table.splitlines()[1:]
    assert plain == "plain-name   y"
    assert wide == f"{output.printable(cell)}{' ' * (len('plain-name') - columns)}   x"
    header, row = output.table(("N", "M"), [(cell * 3, "x")]).splitlines()
    assert header == f"N{' ' * (columns * 3 - 1)}   M"
    assert row == f"{output.printable(cell * 3)}   x"


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


@pytest.mark.parametrize(
    "text",
    [
        *("y", "n", "No", "on", "OFF", "~", "", "null", "<<", "="),
        *("1e3", "0x1f", "0o7", "1_0", "-.5", ".inf", ".nan", "9" * 500, "2026-01-01", "1:30", "1e3x"),
        *("a: b", "- a", "#a", "'a'", "a\nb", "é", " a "),
    ],
)
def test_yaml_says_what_json_says(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Read as kubectl reads it."""
    value = {text: [text], "of": {"amount": 2, "part": 0.5, "is": True, "not": None}}
    output.print_document("yaml", value)
    (document,) = documents.read("x.yaml", capsys.readouterr().out)
    assert document.value == value


def test_yaml_has_no_quotes_where_none_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_document("yaml", {"name": "NVIDIA-H200", "share": "mig-1g.10gb"})
    assert capsys.readouterr().out == "name: NVIDIA-H200\nshare: mig-1g.10gb\n"
