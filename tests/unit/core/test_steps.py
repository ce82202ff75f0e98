"""Work that may be paused, and how small its steps are."""

import pytest

from core.steps import CutShortError, Pace, Steps, cut_short, each, finish, first_of, let_go


def counting(number: int) -> Steps[int]:
    for _ in range(number):
        yield
    return number


def test_without_pauses_work_runs_to_its_end() -> None:
    assert finish(counting(3)) == 3
    assert finish(counting(0)) == 0


def test_a_step_has_at_most_so_many_pieces() -> None:
    pace = Pace(3)
    assert [pace.due() for _ in range(8)] == [False, False, False, True, False, False, True, False]
    assert pace.done == 8


def test_a_piece_larger_than_a_step_stands_alone() -> None:
    pace = Pace(3)
    assert [pace.due(2), pace.due(9), pace.due(1), pace.due(1)] == [False, True, True, False]


def test_steps_that_are_cut_short_put_their_things_in_order_in_steps_as_well() -> None:
    taken = 100

    def booking() -> Steps[str]:
        nonlocal taken
        try:
            while True:
                yield
        except CutShortError:
            while taken:
                taken -= 1
                yield
            raise

    steps = booking()
    next(steps)
    assert [taken for _ in cut_short(steps)] == list(range(99, -1, -1))


def test_steps_that_have_nothing_to_put_in_order_end_at_once() -> None:
    steps = counting(3)
    next(steps)
    assert list(cut_short(steps)) == []
    assert next(steps, "over") == "over"


def test_a_driver_that_gives_up_in_between_still_ends_the_steps() -> None:
    ended = []

    def endless() -> Steps[None]:
        try:
            yield
        except CutShortError:
            try:
                while True:
                    yield
            finally:
                ended.append("tidy")

    steps = endless()
    next(steps)
    cutting = cut_short(steps)
    next(cutting)
    cutting.close()
    assert ended == ["tidy"]


def test_the_first_item_that_is_wanted_is_looked_for_in_steps() -> None:
    looked: list[int | None] = []

    def wanted(item: int | None) -> bool:
        looked.append(item)
        return item == 25

    steps = first_of(range(100), wanted, 10)
    next(steps)
    assert looked == list(range(10))
    assert finish(steps) == 25
    assert looked == list(range(26))
    nobody: object = finish(first_of([*range(5)], wanted, 10))
    assert nobody is None


@pytest.mark.parametrize("items", [list(range(25)), set(range(25)), dict.fromkeys(range(25))])
def test_what_is_not_needed_any_more_is_let_go_of_in_steps(
    items: list[int] | set[int] | dict[int, None],
) -> None:
    left = [len(items) for _ in let_go(items, 10)]
    assert left == [15, 5]
    assert not items


@pytest.mark.parametrize(("count", "pauses"), [(0, 0), (1, 1), (2, 1), (3, 2), (5, 3)])
def test_each_item_is_done_once_in_order_two_of_them_in_a_step(count: int, pauses: int) -> None:
    done = list[int]()
    assert sum(1 for _ in each(range(count), done.append, 2)) == pauses
    assert done == list(range(count))
