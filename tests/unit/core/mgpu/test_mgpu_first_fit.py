"""The quick answer to whether there is room."""

import pytest

from core.mgpu.allocation import Doubt, first_fit
from tests.unit.core.mgpu.cases import Wish, a_model, a_state, an_ask

WHOLE = (1, 100, None)


@pytest.mark.parametrize(
    ("wishes", "cards", "answer"),
    [
        (
            [WHOLE, (1, 50, 1000), WHOLE],
            [(50, 9000), (100, 10_000), (100, 10_000)],
            {0: (1,), 1: (0,), 2: (2,)},
        ),
        ([(2, 50, 1000)], [(100, 10_000), (60, 9000), (50, 900)], {0: (0, 1)}),
        ([(1, 10, 1000), (1, 50, 1000)], [(60, 9000), (50, 9000)], {0: (0,), 1: (1,)}),
        ([WHOLE], [(99, 10_000)], Doubt.NO_ROOM),
        ([WHOLE, (1, 50, 1000)], [(100, 10_000), (49, 9000)], Doubt.NO_ROOM),
        ([(3, 1, 1)], [(100, 10_000), (99, 9000)], Doubt.NO_ROOM),
        ([(1, 50, 1000), (1, 50, 1000)], [(99, 9000)], Doubt.NO_ROOM),
        ([(1, 50, 1000), (1, 20, 1000)], [(50, 9000), (19, 9000)], Doubt.NO_ROOM),
        ([(1, 50, 1000), (1, 20, 1000)], [(60, 9000), (15, 9000)], Doubt.UNDECIDED),
        ([(1, 30, 1000), (1, 20, 6000)], [(30, 6000), (40, 1000)], Doubt.UNDECIDED),
    ],
)
def test_clear_cases_and_doubt(wishes: list[Wish], cards: list[tuple[int, int]], answer: object) -> None:
    """An arrangement where the fullest cards do, no room where all together or one alone find none, else doubt."""
    assert first_fit(an_ask(*wishes), a_model(len(cards)), a_state(*cards), cap=16) == answer


def test_seats_count() -> None:
    """A card with as many containers as allowed takes no more."""
    state = a_state((90, 9000, 2), (100, 10_000))
    assert first_fit(an_ask((1, 5, 5)), a_model(2), state, cap=2) == {0: (1,)}
    assert first_fit(an_ask((2, 5, 5)), a_model(2), state, cap=2) is Doubt.NO_ROOM
    three = an_ask((1, 5, 5), (1, 5, 5), (1, 5, 5))
    assert first_fit(three, a_model(2), state, cap=2) is Doubt.NO_ROOM
