"""The table of guards that are taken out stays true: each is there once, and so are the tests that have to notice."""

from pathlib import Path

import pytest

from hack.mutants.guard import Guard
from hack.mutants.guards import GUARDS

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_what_is_taken_out_stands_there_once_and_its_tests_are_there(guard: Guard) -> None:
    assert (_ROOT / guard.file).read_text("utf-8").count(guard.old) == 1
    assert guard.old != guard.new
    assert guard.tests
    assert all((_ROOT / test).exists() for test in guard.tests)


def test_no_guard_is_named_twice_and_there_are_no_fewer_than_twenty() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS) >= 20
