"""Answers that need long searches come piece by piece, and are those that come in one."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.binding.shares import Granted, decide
from core.mgpu import filter as node_filter
from core.mgpu import pieces
from core.mgpu.arrangement import OnTheWay
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import fits
from core.mgpu.node import idle_state, model_of
from core.mgpu.pieces import AT_ONCE, PAUSE, Pieces, SearchUnderWayError, in_steps, searched
from core.mgpu.search import solve
from core.refusal import Refusal
from core.settings import Settings
from core.steps import Steps, finish
from tests.builders import a_node, a_pod
from tests.fakes.counted import calls_of, longest_step
from tests.unit.core.mgpu.cases import an_ask, filling
from tests.unit.core.mgpu.test_mgpu_allocation import hard
from tests.unit.core.mgpu.test_mgpu_effort import a_crowd

NODE = a_node("n1").mgpu(16, memory=16_384, policy="native-burst-share").view()


def forget() -> None:
    """Nothing that was found is known any more."""
    solve.cache_clear()
    node_filter._shortage.cache_clear()


def a_bind(ask: MgpuAsk, others: OnTheWay | None = None) -> Callable[[], Granted | Refusal]:
    pod = a_pod("p").annotation(names.NODE_ANNOTATION, "n2").view()
    return partial(decide, pod, ask, NODE, [], Settings(), others)


def judged() -> Callable[[], Refusal | None]:
    ask, model, state = filling(16), model_of(NODE), idle_state(model_of(NODE))
    return partial(fits, ask, model, state, Settings())


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (judged(), 4),
        (a_bind(filling(16)), 4),
        (a_bind(hard()[0]), 4),
        (a_bind(an_ask((1, 5, 800)), OnTheWay(a_crowd(60, 4), frozenset([*a_crowd(60, 4)][:30]))), 1),
    ],
    ids=["a node is judged", "a bind is refused", "a bind is granted", "a bind amid a crowd"],
)
def test_an_answer_is_the_same_in_pieces_of_a_few_search_steps_each(
    answer: Callable[[], object], part: int
) -> None:
    """What needs no search is done in one piece, and amid a crowd that is the most of it."""
    forget()
    in_one_piece = answer()
    forget()
    whole = calls_of(answer)
    forget()
    assert longest_step(in_steps(answer)) < whole / part
    forget()
    assert finish(in_steps(answer)) == in_one_piece


wishes = st.tuples(st.integers(1, 4), st.integers(1, 60), st.integers(100, 9000))


@given(
    st.lists(wishes, min_size=1, max_size=8), st.lists(st.lists(wishes, min_size=1, max_size=3), max_size=6)
)
def test_so_is_any_other_bind(
    asked: list[tuple[int, int, int]], crowd: list[list[tuple[int, int, int]]]
) -> None:
    others = OnTheWay({f"o{number}": an_ask(*parts) for number, parts in enumerate(crowd)})
    answer = a_bind(an_ask(*asked), others)
    forget()
    in_one_piece = answer()
    forget()
    assert finish(in_steps(answer)) == in_one_piece


def counting(steps: int) -> Steps[int]:
    """A search of so many steps."""
    for step in range(1, steps + 1):
        if step % PAUSE == 0:
            yield
    return steps


@pytest.mark.parametrize(("steps", "pauses"), [(0, 0), (PAUSE, 0), (AT_ONCE - 1, 0), (AT_ONCE + PAUSE, 1)])
def test_what_takes_no_longer_than_the_allowance_needs_no_pause(steps: int, pauses: int) -> None:
    looked = 0

    def answer() -> int:
        nonlocal looked
        looked += 1
        return searched("q", counting(steps))

    taken = in_steps(answer)
    found = sum(1 for _ in taken)
    assert (found, looked) == (pauses, 1 + min(pauses, 1))


def test_the_allowance_is_that_of_all_searches_together() -> None:
    """Each is as short as can be, and yet there is a pause for so many of them."""
    begun: list[int] = []

    def answer() -> int:
        begun.append(0)
        return sum(searched(number, counting(PAUSE)) for number in range(40))

    assert finish(in_steps(answer)) == 40 * PAUSE
    assert 2 < len(begun) < 40, "each time some of them are found out"


def test_it_goes_by_what_there_is_when_its_searches_are_over() -> None:
    free = ["before"]
    taken = in_steps(lambda: (searched("q", counting(1000)), free[0]))
    next(taken)
    free[0] = "after"
    assert finish(taken) == (1000, "after")


def test_one_that_never_comes_to_an_end_by_pieces_is_worked_out_in_one() -> None:
    begun: list[int] = []

    def answer() -> int:
        begun.append(0)
        return searched(len(begun), counting(200))

    assert finish(in_steps(answer)) == 200
    assert len(begun) == pieces._BEGUN_MOST + 1


def test_who_wants_it_in_one_piece_has_it_so_meanwhile() -> None:
    under_way = in_steps(lambda: searched("q", counting(1000)))
    next(under_way)
    assert searched("q", counting(1000)) == 1000


def test_a_search_that_is_not_gone_on_with_is_come_upon_again() -> None:
    one = Pieces()
    for _ in range(2):
        with pytest.raises(SearchUnderWayError):
            one.begin(lambda: searched("q", counting(1000)))
    finish(one.go_on())
    finish(one.go_on())
    assert one.begin(lambda: searched("q", counting(1000))) == 1000
