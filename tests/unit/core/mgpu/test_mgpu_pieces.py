"""Answers that need long searches come piece by piece, and are those that come in one."""

from collections.abc import Callable
from functools import cache, partial

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
from core.mgpu.pieces import AT_ONCE, PAUSE, Pieces, Search, SearchUnderWayError, in_steps, searched
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


def counting(steps: int, begun: list[int] | None = None) -> Callable[[], Search[int]]:
    """A search of so many steps."""

    def run() -> Steps[int]:
        if begun is not None:
            begun.append(steps)
        for step in range(1, steps + 1):
            if step % PAUSE == 0:
                yield
        return steps

    return lambda: Search(run(), lambda found: found)


@pytest.mark.parametrize(("steps", "pauses"), [(0, 0), (PAUSE, 0), (AT_ONCE - 1, 0), (AT_ONCE + PAUSE, 1)])
def test_what_takes_no_longer_than_the_allowance_needs_no_pause(steps: int, pauses: int) -> None:
    looked, question = 0, object()

    def answer() -> int:
        nonlocal looked
        looked += 1
        return searched(question, counting(steps))

    taken = in_steps(answer)
    found = sum(1 for _ in taken)
    assert (found, looked) == (pauses, 1 + min(pauses, 1))


@pytest.mark.parametrize(("steps", "begun"), [(1, 1), (10, 4), (PAUSE, 11)])
def test_the_allowance_is_that_of_all_searches_together(steps: int, begun: int) -> None:
    """Each is as short as can be, and yet the answer is begun anew after so many of them."""
    questions, times = [object() for _ in range(40)], 0

    def answer() -> int:
        nonlocal times
        times += 1
        return sum(searched(question, counting(steps)) for question in questions)

    assert finish(in_steps(answer)) == 40 * steps
    assert times == begun


def test_it_goes_by_what_there_is_when_its_searches_are_over() -> None:
    free, question = ["before"], object()
    taken = in_steps(lambda: (searched(question, counting(1000)), free[0]))
    next(taken)
    free[0] = "after"
    assert finish(taken) == (1000, "after")


def test_one_that_never_comes_to_an_end_by_pieces_is_worked_out_in_one() -> None:
    begun: list[int] = []

    def answer() -> int:
        begun.append(0)
        return searched(object(), counting(200))

    assert finish(in_steps(answer)) == 200
    assert len(begun) == pieces._BEGUN_MOST + 1


def test_who_wants_it_in_one_piece_has_it_so_meanwhile() -> None:
    question = object()
    under_way = in_steps(lambda: searched(question, counting(1000)))
    next(under_way)
    assert searched(question, counting(1000)) == 1000
    assert finish(under_way) == 1000


def test_a_search_that_is_not_gone_on_with_is_come_upon_again() -> None:
    one, question, begun = Pieces(), object(), list[int]()
    for _ in range(2):
        with pytest.raises(SearchUnderWayError):
            one.begin(lambda: searched(question, counting(1000, begun)))
    finish(one.go_on())
    finish(one.go_on())
    assert one.begin(lambda: searched(question, counting(1000, begun))) == 1000
    assert begun == [1000]


def test_who_asks_the_same_goes_on_with_the_same_search() -> None:
    """A hundred binds of pods alike to nodes alike, of which each has to be decided in its time."""
    question, begun = object(), list[int]()
    # As `solve` does, it keeps what is found.
    asked = cache(lambda: searched(question, counting(1000, begun)))
    answers = [in_steps(asked) for _ in range(100)]
    pauses, found = 0, list[int]()
    while answers:
        for each in tuple(answers):
            try:
                next(each)
                pauses += 1
            except StopIteration as end:
                found.append(end.value)
                answers.remove(each)
    assert (found, begun) == ([1000] * 100, [1000])
    assert pauses < 200


def test_who_asks_again_after_it_was_given_up_goes_on_where_it_was() -> None:
    question, begun = object(), list[int]()
    for _ in range(3):
        given_up = in_steps(lambda: searched(question, counting(1000, begun)))
        next(given_up)
        given_up.close()
    assert finish(in_steps(lambda: searched(question, counting(1000, begun)))) == 1000
    assert begun == [1000]


def test_of_very_many_that_are_given_up_the_last_ones_are_kept() -> None:
    begun: list[int] = []
    questions = [object() for _ in range(2 * pieces._UNDER_WAY_MOST)]
    for question in questions:
        next(in_steps(lambda question=question: searched(question, counting(1000, begun))))  # type: ignore[misc]
    assert len(pieces._under_way) <= pieces._UNDER_WAY_MOST
    for question, again in ((questions[-1], 0), (questions[0], 1)):
        before = len(begun)
        finish(in_steps(lambda question=question: searched(question, counting(1000, begun))))  # type: ignore[misc]
        assert len(begun) - before == again
