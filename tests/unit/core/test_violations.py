"""Messages look like the API server's own, stay on a line where they must, and never fail to be built."""

from datetime import date
from typing import Any

import pytest

from core.violations import Findings, Hint, Violation, child, message, show


def test_a_violation_reads_like_a_field_error_of_the_api_server() -> None:
    violation = Violation("Code", "spec.nodeName", "must not be set", kind="Forbidden", value="n1")
    assert str(violation) == 'spec.nodeName: Forbidden: "n1": must not be set'


def test_a_violation_without_value_shows_none_and_null_is_a_value() -> None:
    assert (
        str(Violation("Code", "spec", "is missing", kind="Required value"))
        == "spec: Required value: is missing"
    )
    assert str(Violation("Code", "spec", "bad", value=None)) == "spec: Invalid value: null: bad"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", '"a\\nb"'),
        ("\u2028\u2029\x7f\x85\x9f", '"\\u2028\\u2029\\u007f\\u0085\\u009f"'),
        ("\ud800", '"\\ud800"'),
        ("卡", '"卡"'),
        ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
        ({1, 2}, '"<set>"'),
        ({date(2024, 1, 1): 1}, "<dict>"),
    ],
)
def test_any_value_is_shown_on_one_printable_line(value: object, shown: str) -> None:
    assert show(value) == shown
    show(value).encode()


def test_what_cannot_be_rendered_is_named_by_its_type() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert show(loop) == "<list>"
    assert show(deep) == "<list>"


def test_a_long_value_is_cut_and_its_length_told() -> None:
    shown = show("x" * 1000)
    assert len(shown) < 160
    assert shown.endswith("... (1002 characters)")


def test_the_first_violation_stands_on_the_first_line_and_a_flood_is_cut() -> None:
    violations = [Violation("Code", f"spec.a[{index}]", "bad") for index in range(25)]
    lines = message(violations).split("\n")
    assert lines[0] == "spec.a[0]: Invalid value: bad;"
    assert lines[-1].strip() == "and 5 more"
    assert len(lines) == 21


def test_findings_add_up_in_order() -> None:
    one, two = Violation("A", "a", "x"), Violation("B", "b", "y")
    hint = Hint("C", "c", "z")
    found = Findings([one])
    found += Findings([two], [hint])
    assert found == Findings([one, two], [hint])
    assert str(hint) == "c: z"
    assert child("metadata.annotations", "a/b") == "metadata.annotations[a/b]"
