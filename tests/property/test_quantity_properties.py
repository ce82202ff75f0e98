"""Quantities under random input: exact, ordered, total, and never anything but QuantityError."""

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from core import quantity

SCALES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e2": Fraction(100),
    "E-3": Fraction(1, 1000),
}
CRD_PATTERN = re.compile(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$", re.ASCII
)
signs, suffixes = st.sampled_from(["", "+", "-"]), st.sampled_from(sorted(SCALES))


@given(signs, st.integers(0, 10**9), suffixes)
def test_a_number_with_a_suffix_is_their_product(sign: str, number: int, suffix: str) -> None:
    expected = number * SCALES[suffix] * (-1 if sign == "-" else 1)
    assert quantity.parse(f"{sign}{number}{suffix}") == expected


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP_ ", max_size=12) | st.text(max_size=12))
def test_a_text_is_read_if_and_only_if_the_api_server_s_schema_admits_it(text: str) -> None:
    admitted = CRD_PATTERN.fullmatch(text) is not None
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        assert not admitted
    else:
        assert admitted


@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.lists(st.integers())
)
def test_any_value_is_read_or_refused_and_within_64_bits(value: object) -> None:
    try:
        amount = quantity.parse(value)
    except quantity.QuantityError:
        return
    assert abs(amount) <= 2**63 - 1
    assert 0 <= quantity.units(value) - amount < 1
    assert 0 <= quantity.milli(value) - amount * 1000 < 1


@given(st.integers(-(10**15), 10**15))
def test_rendered_thousandths_read_back(milli: int) -> None:
    assert quantity.milli(quantity.render_milli(milli)) == milli
