"""CPU and memory against a queue's limits, and the exact words when they do not fit."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.queues.cpu_memory import cpu_memory_shortfall
from core.queues.numbers import go_float

MI = 1000 * 2**20


def shortfall(
    capability: Mapping[str, int], used: Mapping[str, int], wanted: Mapping[str, int]
) -> tuple[str, str] | None:
    found = cpu_memory_shortfall("q", capability, lambda key: used.get(key, 0), wanted)
    return None if found is None else (found.code, found.message)


@pytest.mark.parametrize("key", ["cpu", "memory"])
@pytest.mark.parametrize(
    ("limit", "used", "wanted", "fits"),
    [
        (4000, 1000, 3000, True),
        (4000, 1001, 3000, False),
        (4000, 9000, 0, True),
        (4000, 4000, 1, False),
        (0, 0, 1, False),
        (0, 0, 0, True),
    ],
)
def test_reaching_the_limit_fits_and_passing_it_does_not(
    key: str, limit: int, used: int, wanted: int, fits: bool
) -> None:
    assert (shortfall({key: limit}, {key: used}, {key: wanted}) is None) is fits


def test_a_dimension_without_limit_does_not_limit_and_other_keys_are_not_looked_at() -> None:
    assert shortfall({}, {"cpu": 10**12}, {"cpu": 10**12, "memory": 1}) is None
    assert shortfall({"A": 0}, {}, {"A": 1000}) is None


def test_cpu_is_told_in_thousandths() -> None:
    assert shortfall({"cpu": 4000}, {"cpu": 500}, {"cpu": 5000}) == (
        "InsufficientCPUQuota",
        (
            "Queue <q> has insufficient CPU quota: requested <5000>, total would be <5500>, but capability is <4000>. "
            "In cores: asks for 5, more than the whole capability (4); ask for less, or raise spec.capability.cpu."
        ),
    )


def test_memory_is_told_in_mi_with_brackets_around_the_queue() -> None:
    found = shortfall({"memory": 3 * MI // 2}, {"memory": 0}, {"memory": 2048 * MI})
    assert found is not None
    assert found[0] == "InsufficientMemoryQuota"
    assert found[1] == (
        "Queue <q> has insufficient memory quota: "
        "requested <2048 Mi>, total would be <2048 Mi>, but capability is <1.5 Mi>. "
        "In Gi: asks for 2, more than the whole capability (0.001); ask for less, or raise spec.capability.memory."
    )


def test_cpu_is_looked_at_before_memory_whatever_the_order_of_the_keys() -> None:
    for wanted in ({"cpu": 1, "memory": 1}, {"memory": 1, "cpu": 1}):
        found = shortfall({"memory": 0, "cpu": 0}, {}, wanted)
        assert found is not None
        assert found[0] == "InsufficientCPUQuota"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0"),
        (5000, "5000"),
        (Fraction(3, 2), "1.5"),
        (999_999, "999999"),
        (1_000_000, "1e+06"),
        (1_234_567, "1.234567e+06"),
        (2_097_152, "2.097152e+06"),
        (Fraction(4_194_305, 2), "2.0971525e+06"),
        (123_456_789_012, "1.23456789012e+11"),
        (10**12, "1e+12"),
        (10**22, "1e+22"),
        (Fraction(1, 10_000), "0.0001"),
        (Fraction(1, 100_000), "1e-05"),
        (Fraction(1, 2**21), "4.76837158203125e-07"),
        (Fraction(1, 3), "0.3333333333333333"),
        (-1500, "-1500"),
        (-2_000_000, "-2e+06"),
    ],
)
def test_numbers_are_printed_as_go_prints_them(value: int | Fraction, printed: str) -> None:
    """The right column is what Go's fmt prints for %v of the same float64."""
    assert go_float(value) == printed


@given(st.fractions(min_value=0, max_value=10**18))
def test_a_printed_number_reads_back_as_the_same_float(value: Fraction) -> None:
    assert float(go_float(value)) == float(value)
    assert not go_float(value).endswith(".0")
