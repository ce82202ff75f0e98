"""No bytes break what reads what others wrote: those that once did, those that every object is made of, and drawn ones."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import engine
from tests.fuzz.kept import kept
from tests.fuzz.targets import TARGETS

_CASES = [(target, name, data) for target in TARGETS for name, data in kept(target)]


@pytest.mark.parametrize(
    ("target", "name", "data"), _CASES, ids=[f"{target}-{name}" for target, name, _ in _CASES]
)
def test_what_once_broke_a_target_does_so_no_more(target: str, name: str, data: bytes) -> None:
    TARGETS[target](data)


@pytest.mark.parametrize("target", TARGETS)
def test_no_bytes_at_all_and_the_plainest_ones_are_taken(target: str) -> None:
    for length in (0, 1, 2, 64):
        for byte in (0, 1, 2, 3, 255):
            TARGETS[target](bytes([byte]) * length)


@pytest.mark.parametrize("target", TARGETS)
def test_edits_at_random_break_nothing(target: str) -> None:
    """Long runs of decisions, which drawn examples are too short for; the same ones each time."""
    drawn = random.Random(7)
    for _ in range(60):
        TARGETS[target](drawn.randbytes(200))


@pytest.mark.parametrize("target", ["annotations", "quantities", "reviews", "settings"])
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=80))
def test_drawn_bytes_break_nothing(target: str, data: bytes) -> None:
    TARGETS[target](data)


def test_a_search_by_drawn_bytes_ends_in_its_time_however_slow_its_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried, clock = list[bytes](), [0.0]

    def slow(data: bytes) -> None:
        tried.append(data)
        clock[0] += 1.0

    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    engine._without_coverage(slow, 20)
    assert len(tried) == 20
