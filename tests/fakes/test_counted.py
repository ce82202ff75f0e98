"""The count of calls is of the work alone, so that the same work always comes to the same number."""

import gc
from collections.abc import Iterator

import pytest

from tests.fakes.counted import calls_of


@pytest.fixture
def collected() -> Iterator[list[str]]:
    """The phases of all collections of garbage, of which there is one at nearly each object that is made."""
    seen, threshold = list[str](), gc.get_threshold()

    def note(phase: str, _info: dict[str, int]) -> None:
        seen.append(phase)

    gc.callbacks.append(note)
    gc.set_threshold(1)
    yield seen
    gc.set_threshold(*threshold)
    gc.callbacks.remove(note)


def is_collected(collected: list[str]) -> bool:
    """Whether garbage is collected from now on, where something is made.

    Not while another thread is at it, which may have lent us the interpreter: it needs that for some moments more.
    """
    before, made = len(collected), list[list[int]]()
    while len(collected) == before and len(made) < 1_000_000:
        made.append([])
    return len(collected) > before


def test_a_collection_of_garbage_that_falls_into_the_work_is_not_counted(collected: list[str]) -> None:
    """It is due by what was made in the process before, and tells others, who then work as well: hypothesis for one."""

    def work() -> None:
        assert len([[number] for number in range(500)]) == 500

    assert is_collected(collected)
    assert calls_of(work) - calls_of(lambda: None) == 2, (
        "the list is made in a call, and its length asked for in another"
    )


def test_afterwards_garbage_is_collected_as_before(collected: list[str]) -> None:
    calls_of(list)
    assert is_collected(collected)
