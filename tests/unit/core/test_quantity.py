"""Quantities read as the API server reads them, exactly."""

from fractions import Fraction

import pytest

from core import quantity

_CAP = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("00", 0),
        ("0.0", 0),
        ("0Ki", 0),
        ("0e1000", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("007", 7),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("-.5", Fraction(-1, 2)),
        ("1.G", 10**9),
        (".001", Fraction(1, 1000)),
        ("1n", Fraction(1, 10**9)),
        ("4u", Fraction(4, 10**6)),
        ("3m", Fraction(3, 1000)),
        ("8k", 8_000),
        ("7M", 7 * 10**6),
        ("6G", 6 * 10**9),
        ("5T", 5 * 10**12),
        ("2P", 2 * 10**15),
        ("1E", 10**18),
        ("1Ki", 2**10),
        ("7Mi", 7 * 2**20),
        ("6Gi", 6 * 2**30),
        ("5Ti", 5 * 2**40),
        ("4Pi", 4 * 2**50),
        ("3Ei", 3 * 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("1E-3", Fraction(1, 1000)),
        ("1.53E12", 1_530_000_000_000),
        ("100.035Ki", Fraction(10243584, 100)),
        ("0.05Gi", Fraction(536870912, 10)),
    ],
)
def test_every_form_of_the_grammar_is_read_exactly(text: str, value: Fraction | int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("text", "nanos"),
    [("0.9n", 1), ("3.001n", 4), ("1.1E-9", 2), ("0.0000000005", 1), ("0.00000012345", 124), ("1e-1000", 1)],
)
def test_what_is_finer_than_a_nano_unit_is_rounded_away_from_zero(text: str, nanos: int) -> None:
    assert quantity.parse(text) == Fraction(nanos, 10**9)
    assert quantity.parse(f"-{text}") == -Fraction(nanos, 10**9)


@pytest.mark.parametrize(
    "text", ["9Ei", "9223372036854775807Ki", "9223372036854775808", "1e19", "1e999999999999", "9" * 256]
)
def test_magnitudes_are_cut_at_64_bits(text: str) -> None:
    assert quantity.parse(text) == _CAP
    assert quantity.parse(f"-{text}"[: quantity.MAX_LENGTH]) <= -_CAP


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",  # the API server reads a lone dot or sign as 0 and hands on "0"; nobody means that
        "-",
        "+",
        "+-1",
        "--1",
        "1 ",
        " 1",
        "1\n",
        "10 Gi",
        "1i",
        "1K",
        "1ki",
        "1mi",
        "80GB",
        "1.1.1",
        "1.1.M",
        "1e",
        "1e+",
        "1e1.5",
        "1e3Ki",
        "0x10",
        "1_000",
        "1,5",
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "٣",
        "1\u00b2",
        "four",
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match="must be a quantity"):
        quantity.parse(text)


def test_a_text_longer_than_any_amount_is_refused_without_being_read() -> None:
    with pytest.raises(quantity.QuantityError, match="at most 256 characters"):
        quantity.parse("1" * 257)


@pytest.mark.parametrize(
    "value", [None, True, False, [], {}, b"1", float("nan"), float("inf"), float("-inf")]
)
def test_json_values_that_are_no_amount_are_refused(value: object) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(4, 4), (0, 0), (-3, -3), (1.5, Fraction(3, 2)), (0.1, Fraction(1, 10)), (1e22, _CAP), (2**63, _CAP)],
)
def test_bare_numbers_are_read_like_their_text(value: float, expected: Fraction | int) -> None:
    assert quantity.parse(value) == expected


def test_an_integer_of_a_million_digits_is_cut_at_once() -> None:
    assert quantity.parse(1 << 4_000_000) == _CAP
    assert quantity.parse(-(1 << 4_000_000)) == -_CAP


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        ("1", 1, 1000),
        ("500m", 1, 500),
        ("1n", 1, 1),
        ("1500m", 2, 1500),
        ("1.0001", 2, 1001),
        ("-500m", 0, -500),
        ("-1500m", -1, -1500),
        ("16Gi", 2**34, 2**34 * 1000),
    ],
)
def test_units_and_thousandths_are_rounded_up(text: str, units: int, milli: int) -> None:
    assert quantity.units(text) == units
    assert quantity.milli(text) == milli


@pytest.mark.parametrize(("text", "whole"), [("1", True), ("500m", False), ("1000m", True), ("1e2", True)])
def test_whole_numbers_are_told_by_value_not_by_spelling(text: str, *, whole: bool) -> None:
    assert quantity.is_whole(quantity.parse(text)) is whole


@pytest.mark.parametrize(
    ("milli", "text"), [(0, "0"), (2000, "2"), (1500, "1500m"), (1, "1m"), (-1, "-1m"), (-2000, "-2")]
)
def test_thousandths_are_rendered_as_the_shortest_plain_quantity(milli: int, text: str) -> None:
    assert quantity.render_milli(milli) == text
    assert quantity.milli(text) == milli
