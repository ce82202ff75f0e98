"""Whether one more guest fits, to the last thousandth, and what is said when it does not."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.crossquota.filter import excess, readable, readable_limit
from core.crossquota.guest import Guest
from tests.unit.core.crossquota.ruling import GI, a_guest, gpu_node, quota_of, ruled, using

QUOTA = quota_of(
    gpu_node(), ruled(quotaResources=["cpu", "memory"], quota={"cpu": "32000m", "memory": "64Gi"})
)
SMALL = quota_of(gpu_node(), ruled(quotaResources=["cpu", "memory"], quota={"cpu": 4, "memory": "8Gi"}))


def test_the_first_worked_example() -> None:
    """32000m and 64Gi allowed, 28000m and 50Gi used: 6000m are too much, 10Gi would not be."""
    found = excess(a_guest(cpu=6000, memory=10), QUOTA, using(cpu=28_000, memory=50))
    assert found is not None
    assert found.message == "cpu quota exceeded: required 6, used 28, quota 32"
    assert not found.unresolvable


@pytest.mark.parametrize(
    ("guest", "message"),
    [
        (a_guest(cpu=3000, memory=1), "cpu quota exceeded: required 3, used 2, quota 4"),
        (a_guest(cpu=1000, memory=6), "memory quota exceeded: required 6Gi, used 4Gi, quota 8Gi"),
        (a_guest(cpu=1000, memory=2), ""),
        (a_guest(cpu=2000, memory=4), ""),
        (
            a_guest(cpu=2001, memory=5),
            (
                "cpu quota exceeded: required 2001m, used 2, quota 4; "
                "memory quota exceeded: required 5Gi, used 4Gi, quota 8Gi"
            ),
        ),
    ],
    ids=["cpu", "memory", "fits", "equality fits", "both, in the order of the checks"],
)
def test_beside_two_pods_of_one_core_and_two_gibibytes(guest: Guest, message: str) -> None:
    found = excess(guest, SMALL, using(cpu=2000, memory=4))
    assert (found.message if found else "") == message


def test_what_a_pod_does_not_ask_for_is_not_checked() -> None:
    """The quota was lowered below what is in use: memory is still to be had."""
    over = using(cpu=9000, memory=0)
    assert excess(a_guest(memory=1), SMALL, over) is None
    assert excess(a_guest(), SMALL, over) is None
    assert excess(a_guest(cpu=1), SMALL, over) is not None


def test_more_than_the_whole_quota_cannot_be_helped() -> None:
    found = excess(a_guest(cpu=4001), SMALL, {})
    assert found is not None
    assert found.unresolvable
    beside = excess(a_guest(cpu=4000), SMALL, using(cpu=1))
    assert beside is not None
    assert not beside.unresolvable


def test_a_resource_that_the_node_does_not_have_is_refused_to_whoever_asks_for_it() -> None:
    quota = quota_of(gpu_node(), ruled(quotaResources=["cpu", "example.com/foo"]))
    found = excess(Guest({"example.com/foo": 1000}), quota, {})
    assert found is not None
    assert found.message == "example.com/foo quota exceeded: required 1, used 0, quota 0"
    assert excess(a_guest(cpu=1000), quota, {}) is None


@given(
    used=st.integers(0, 10**6),
    asked=st.integers(1, 10**6),
    percent=st.integers(1, 10_000),
    cpu=st.integers(1, 10**6),
)
def test_it_fits_exactly_as_long_as_the_sum_is_within_the_quota(
    used: int, asked: int, percent: int, cpu: int
) -> None:
    node = gpu_node(cpu=f"{cpu}m").annotation("volcano.sh/crossquota-percentage-cpu", f"{percent / 100:.2f}")
    quota = quota_of(node, ruled())
    assert (excess(a_guest(cpu=asked), quota, {"cpu": used}) is None) is (
        (used + asked) * 10_000 <= cpu * percent
    )


@pytest.mark.parametrize(
    ("resource", "milli", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2_048_000, "2048"),
        ("memory", 0, "0"),
        ("memory", 64 * GI, "64Gi"),
        ("memory", 1024 * 1024 * GI, "1Pi"),
        ("memory", 1536 * 2**20 * 1000, "1536Mi"),
        ("memory", 1000 * 1000, "1000"),
        ("memory", 1500, "1500m"),
        ("hugepages-2Mi", 4 * 2**20 * 1000, "4Mi"),
        ("ephemeral-storage", 2**10 * 1000, "1Ki"),
        ("nvidia.com/net", 2_048_000, "2048"),
    ],
)
def test_amounts_are_shown_exactly(resource: str, milli: int, text: str) -> None:
    assert readable(resource, milli) == text


@pytest.mark.parametrize(
    ("resource", "milli", "text"),
    [
        ("memory", Fraction(64 * GI, 3), "22906492245"),
        ("memory", Fraction(16 * GI), "16Gi"),
        ("memory", Fraction(999), "0"),
        ("cpu", Fraction(64_000, 3), "21333m"),
        ("cpu", Fraction(1, 2), "0"),
    ],
)
def test_a_limit_is_cut_to_what_can_be_asked_for(resource: str, milli: Fraction, text: str) -> None:
    assert readable_limit(resource, milli) == text
