"""Scores of nodes, exact to the digit."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.crossquota.filter import node_score, preference
from core.crossquota.guest import Guest, Strategy
from core.settings import Settings
from tests.unit.core.crossquota.ruling import a_guest, gpu_node, quota_of, ruled, using

BOTH = ["cpu", "memory"]


def settings_with(cpu: int, memory: str = "64Gi", **section: Any) -> Settings:
    return ruled(quotaResources=BOTH, quota={"cpu": cpu, "memory": memory}, **section)


def score(guest: Guest, used: dict[str, int], settings: Settings) -> Fraction:
    return node_score(guest, quota_of(gpu_node(), settings), used, settings.cross_quota)


def test_the_worked_example_of_most_allocated() -> None:
    found = score(a_guest(cpu=4000, memory=8), using(cpu=24_000, memory=40), settings_with(32))
    assert found == Fraction(95, 11)
    assert float(found) == pytest.approx(8.636363636)


def test_the_worked_example_of_least_allocated() -> None:
    guest = a_guest(cpu=4000, memory=8, strategy="least-allocated")
    assert score(guest, using(cpu=8000, memory=16), settings_with(32)) == Fraction(25, 4)


EVEN = {"weights": {"cpu": 5, "memory": 5}}


@pytest.mark.parametrize(
    ("guest", "section", "expected"),
    [
        (a_guest(cpu=4000, memory=8), {}, "6.25"),
        (a_guest(cpu=4000, memory=8, strategy="least-allocated"), {}, "3.75"),
        (a_guest(cpu=4000), {}, "6.25"),
        (a_guest(cpu=8000, memory=16), EVEN, "7.5"),
        (a_guest(cpu=4000, memory=8), {"weight": 0}, "0"),
        (a_guest(cpu=4000, memory=8), {"weight": 1}, "0.625"),
        (a_guest(cpu=8000, memory=8), {"weights": {"cpu": 0, "memory": 1}}, "6.25"),
        (a_guest(cpu=8000), {"weights": {"cpu": 0}}, "0"),
        (a_guest(), {}, "0"),
        (a_guest(cpu=16_001, memory=1), {}, "0"),
        (a_guest(cpu=1, memory=33), {}, "0"),
        (a_guest(cpu=16_000, memory=32), {}, "10"),
    ],
    ids=[
        "most allocated",
        "least allocated",
        "memory is left out where it is not asked for",
        "equal weights",
        "no scoring",
        "another factor",
        "a weight of nothing does not count",
        "nothing has a weight",
        "nothing is asked for",
        "too much cpu",
        "too much memory",
        "exactly full",
    ],
)
def test_with_half_of_everything_in_use(guest: Guest, section: dict[str, Any], expected: str) -> None:
    assert score(guest, using(cpu=16_000, memory=32), settings_with(32, **section)) == Fraction(expected)


def test_a_resource_without_a_weight_of_its_own_weighs_one() -> None:
    settings = ruled(
        quotaResources=["cpu", "example.com/foo"], quota={"cpu": 4, "example.com/foo": 4}, weights={"cpu": 3}
    )
    guest = Guest({"cpu": 1000, "example.com/foo": 3000})
    assert score(guest, {}, settings) == (Fraction(1, 4) * 3 + Fraction(3, 4) * 1) / 4 * 10


@given(
    used=st.integers(0, 4000),
    asked=st.integers(1, 4000),
    weight=st.integers(1, 100),
    strategy=st.sampled_from(["most-allocated", "least-allocated"]),
)
def test_a_preference_is_between_nothing_and_all(
    used: int, asked: int, weight: int, strategy: Strategy
) -> None:
    quota = quota_of(gpu_node(), settings_with(4))
    found = preference(a_guest(cpu=asked, strategy=strategy), quota, {"cpu": used}, {"cpu": weight})
    assert 0 <= found <= 1
    if used + asked > 4000:
        assert found == 0


@given(used=st.integers(0, 2000), asked=st.integers(1, 2000))
def test_the_two_strategies_are_opposites(used: int, asked: int) -> None:
    quota = quota_of(gpu_node(), settings_with(4))
    most, least = (
        preference(Guest({"cpu": asked}, strategy), quota, {"cpu": used}, {})
        for strategy in ("most-allocated", "least-allocated")
    )
    assert most + least == 1
