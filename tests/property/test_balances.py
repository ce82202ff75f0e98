"""What is left in a queue and in those above it: whoever only asks whether something fits hears what a refusal would say."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from core.queues.ceiling import Ceiling
from core.queues.check import Balance
from core.queues.limits import Limits

amounts = st.integers(0, 4)
uses = st.fixed_dictionaries({"A": amounts, "cpu": amounts})
levels = st.tuples(st.none() | amounts, st.none() | amounts, uses, st.booleans())
"""A limit of cards and one of CPU, what is used of both (also more than that), whether the card quota cannot be read."""
Level = tuple[int | None, int | None, dict[str, int], bool]


def quota(level: Level) -> Limits:
    cards = {} if level[0] is None or level[3] else {"A": level[0]}
    return Limits(cards, {}, malformed="no JSON" if level[3] else "", declared=True)


def cpu(level: Level) -> dict[str, int]:
    return {} if level[1] is None else {"cpu": level[1]}


def _use(level: Level, key: str) -> int:
    return level[2].get(key, 0)


def ceiling(level: Level) -> Ceiling:
    used = partial(_use, level)
    return Ceiling("above", quota(level), used, cpu(level), used)


@given(own=levels, above=st.lists(levels, max_size=3), cards=st.integers(0, 3), wanted=st.integers(0, 3))
def test_what_is_covered_is_what_nobody_is_refused(
    own: Level, above: list[Level], cards: int, wanted: int
) -> None:
    used = partial(_use, own)
    balance = Balance("own", quota(own), used, cpu(own), used, tuple(map(ceiling, above)))
    refused = balance.card_shortfall("A", cards) or balance.cpu_memory_shortfall({"cpu": wanted})
    assert balance.covers("A", cards, {"cpu": wanted}) == (refused is None)


@given(above=levels, cards=st.integers(0, 3))
def test_an_amount_fits_below_a_queue_that_refuses_it_to_nobody(above: Level, cards: int) -> None:
    assert ceiling(above).fits("A", cards) == (ceiling(above).card_shortfall("A", cards) is None)
