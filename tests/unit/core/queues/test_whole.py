"""What quota messages say in whole cards, cores and Gi, behind the words that alerts match."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.queues.whole import Use, in_cards, in_cores, in_gi

GI = 1000 * 2**30
HUGE = 9_007_199_254_740_993
"""One more than a float can tell from its neighbours."""

WAIT = "are in use; wait for cards to come back, or raise the quota."
WAIT_FOR_PODS = "are in use; wait for pods to end, or raise spec.capability."


def uses(*figures: tuple[str, int, int]) -> list[Use]:
    """From whole cards."""
    return [Use(card, used * 1000, limit * 1000) for card, used, limit in figures]


@pytest.mark.parametrize(
    ("asked", "used", "limit", "told"),
    [
        pytest.param(1000, 3, 3, f"asks for 1, 3 of 3 {WAIT}", id="all in use"),
        pytest.param(2000, 2, 3, f"asks for 2, 2 of 3 {WAIT}", id="one is left"),
        pytest.param(3000, 1, 3, f"asks for 3, 1 of 3 {WAIT}", id="as many as the quota"),
        pytest.param(1000, 5, 3, f"asks for 1, 5 of 3 {WAIT}", id="more in use than the quota, after a cut"),
        pytest.param(
            4000,
            0,
            3,
            "asks for 4, more than the whole quota (3); ask for fewer, or raise the quota.",
            id="one beyond the quota",
        ),
        pytest.param(
            4000,
            9,
            3,
            "asks for 4, more than the whole quota (3); ask for fewer, or raise the quota.",
            id="waiting would not help",
        ),
        pytest.param(
            1000,
            0,
            0,
            "asks for 1, more than the whole quota (0); raise the quota.",
            id="no quota: fewer would not help",
        ),
        pytest.param(1, 1, 1, f"asks for 0.001, 1 of 1 {WAIT}", id="the smallest part of a card"),
        pytest.param(1500, 1, 2, f"asks for 1.5, 1 of 2 {WAIT}", id="a half"),
        pytest.param(HUGE * 1000, HUGE, HUGE, f"asks for {HUGE}, {HUGE} of {HUGE} {WAIT}", id="in full"),
    ],
)
def test_cards(asked: int, used: int, limit: int, told: str) -> None:
    assert in_cards(asked, uses(("A", used, limit))) == f"In cards: {told}"


FIGURES = [(card, number + 1, number + 2) for number, card in enumerate("ABCDEF")]


@pytest.mark.parametrize(
    ("count", "state"),
    [
        (1, "1 of 2"),
        (2, "1 of 2 <A>, 2 of 3 <B>"),
        (3, "1 of 2 <A>, 2 of 3 <B>, 3 of 4 <C>"),
        (4, "1 of 2 <A>, 2 of 3 <B>, 3 of 4 <C>, 4 of 5 <D>"),
        (5, "1 of 2 <A>, 2 of 3 <B>, 3 of 4 <C>, 4 of 5 <D> and 1 more"),
        (6, "1 of 2 <A>, 2 of 3 <B>, 3 of 4 <C>, 4 of 5 <D> and 2 more"),
    ],
)
def test_of_a_choice_the_first_four_are_told(count: int, state: str) -> None:
    assert in_cards(2000, uses(*FIGURES[:count])) == f"In cards: asks for 2, {state} {WAIT}"


@pytest.mark.parametrize(
    ("count", "quotas"),
    [
        (1, "2"),
        (2, "2 <A>, 3 <B>"),
        (4, "2 <A>, 3 <B>, 4 <C>, 5 <D>"),
        (6, "2 <A>, 3 <B>, 4 <C>, 5 <D> and 2 more"),
    ],
)
def test_a_choice_that_none_of_its_quotas_could_ever_serve(count: int, quotas: str) -> None:
    told = f"asks for 8, more than the whole quota ({quotas}); ask for fewer, or raise the quota."
    assert in_cards(8000, uses(*FIGURES[:count])) == f"In cards: {told}"


def test_a_choice_waits_while_one_of_its_quotas_would_do() -> None:
    told = in_cards(2000, uses(("A", 0, 1), ("B", 3, 4)))
    assert told == f"In cards: asks for 2, 0 of 1 <A>, 3 of 4 <B> {WAIT}"


def test_a_choice_of_cards_without_quota_is_not_told_to_ask_for_fewer() -> None:
    told = in_cards(1000, uses(("A", 0, 0), ("B", 0, 0)))
    assert told == "In cards: asks for 1, more than the whole quota (0 <A>, 0 <B>); raise the quota."


@pytest.mark.parametrize(
    ("asked", "used", "limit", "told"),
    [
        (1000, 2000, 2000, f"asks for 1, 2 of 2 {WAIT_FOR_PODS}cpu."),
        (1, 2000, 2000, f"asks for 0.001, 2 of 2 {WAIT_FOR_PODS}cpu."),
        (1500, 2250, 3000, f"asks for 1.5, 2.25 of 3 {WAIT_FOR_PODS}cpu."),
        (1000, 9000, 3000, f"asks for 1, 9 of 3 {WAIT_FOR_PODS}cpu."),
        (3000, 1, 3000, f"asks for 3, 0.001 of 3 {WAIT_FOR_PODS}cpu."),
        (
            3001,
            0,
            3000,
            "asks for 3.001, more than the whole capability (3); ask for less, or raise spec.capability.cpu.",
        ),
        (500, 0, 0, "asks for 0.5, more than the whole capability (0); raise spec.capability.cpu."),
        (1000, HUGE, 10**18, f"asks for 1, 9007199254740.993 of {10**15} {WAIT_FOR_PODS}cpu."),
    ],
)
def test_cores(asked: int, used: int, limit: int, told: str) -> None:
    assert in_cores(asked, used, limit) == f"In cores: {told}"


@pytest.mark.parametrize(
    ("asked", "used", "limit", "told"),
    [
        (GI, 3 * GI, 3 * GI, f"asks for 1, 3 of 3 {WAIT_FOR_PODS}memory."),
        (GI // 2, 3 * GI, 3 * GI, f"asks for 0.5, 3 of 3 {WAIT_FOR_PODS}memory."),
        (1, GI, GI, f"asks for 0.001, 1 of 1 {WAIT_FOR_PODS}memory."),
        (GI, 9 * GI, 3 * GI, f"asks for 1, 9 of 3 {WAIT_FOR_PODS}memory."),
        (GI // 3, GI, GI, f"asks for 0.334, 1 of 1 {WAIT_FOR_PODS}memory."),
        (
            2 * GI,
            0,
            3 * GI // 2,
            "asks for 2, more than the whole capability (1.5); ask for less, or raise spec.capability.memory.",
        ),
        (
            GI + 2,
            0,
            GI + 1,
            "asks for 1.001, more than the whole capability (1); ask for less, or raise spec.capability.memory.",
        ),
        (GI, 0, 0, "asks for 1, more than the whole capability (0); raise spec.capability.memory."),
        (GI, 2**60 * 1000, 2**60 * 1000, f"asks for 1, {2**30} of {2**30} {WAIT_FOR_PODS}memory."),
    ],
)
def test_memory(asked: int, used: int, limit: int, told: str) -> None:
    assert in_gi(asked, used, limit) == f"In Gi: {told}"


amounts = st.integers(0, 10**24)


@given(asked=amounts.filter(bool), used=amounts, limit=amounts)
def test_something_is_never_shown_as_none_nor_far_from_what_it_is(asked: int, used: int, limit: int) -> None:
    """And whoever can be served by waiting is told to wait, nobody else."""
    for told, per_unit in (
        (in_cards(asked, [Use("A", used, limit)]), 1000),
        (in_cores(asked, used, limit), 1000),
        (in_gi(asked, used, limit), GI),
    ):
        found = re.search(r"asks for ([0-9.]+), (?:([0-9.]+) of )?", told)
        assert found is not None
        shown = Fraction(found[1])
        assert shown > 0
        assert 0 <= shown - Fraction(asked, per_unit) < Fraction(1, 1000)
        assert (found[2] is not None) is ("wait for" in told) is (asked <= limit)
        assert "e+" not in told
