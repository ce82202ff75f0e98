"""What containers take together against what cards have together."""

from collections.abc import Iterator

import pytest

from core.mgpu.ask import Part
from core.mgpu.totals import Total, excess, free, idle
from tests.unit.core.mgpu.cases import Wish, a_model, a_state, an_ask

WHOLE = (1, 100, None)


@pytest.mark.parametrize(
    ("wishes", "position", "words"),
    [
        ([(1, 50, 5000)] * 4, None, ""),
        ([(1, 50, 1)] * 5, 4, "mgpu-core 250, the node has 200"),
        ([(2, 50, 1), (2, 51, 1)], 1, "mgpu-core 202, the node has 200"),
        ([(1, 1, 9000), (1, 1, 9000), (1, 1, 2001)], 2, "mgpu-memory 20001, the node has 20000"),
        ([(1, 1, 1)] * 6, None, ""),
        ([(2, 1, 1), (2, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)], 4, "7 places on cards, the node has 6"),
        ([WHOLE, (1, 100, 10_000)], None, ""),
        ([WHOLE, (1, 1, 1), WHOLE], 2, "mgpu-core 201, the node has 200"),
        ([WHOLE, (1, 1, 10_001)], 1, "mgpu-memory 20001, the node has 20000"),
        ([(1, 1, 1)] * 4 + [WHOLE], 4, "7 places on cards, the node has 6"),
    ],
)
def test_the_first_container_beyond_what_two_idle_cards_have(
    wishes: list[Wish], position: int | None, words: str
) -> None:
    """Three containers may share a card; a whole card is taken with all that it has."""
    model = a_model(2)
    over = excess(an_ask(*wishes).parts, idle(model, 3), model, 3)
    assert (over and over.position, str(over or "")) == (position, words)


def test_what_is_free() -> None:
    """Cards that take nobody any more count for nothing."""
    state = a_state((60, 9000, 1), (0, 10_000, 1), (50, 5000, 3), (100, 10_000, 0))
    assert free(state.cards, 3) == Total(160, 19_000, 5)


def test_no_more_containers_are_looked_at_than_there_are_places() -> None:
    """Many containers are cheap to ask for."""
    looked, model = 0, a_model(8)

    def parts() -> Iterator[Part]:
        nonlocal looked
        for number in range(5000):
            looked += 1
            yield Part(f"c{number}", 1, 1, 1)

    assert excess(parts(), idle(model, 16), model, 16) is not None
    assert looked == 8 * 16 + 1
