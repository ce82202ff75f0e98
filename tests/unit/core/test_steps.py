"""Work that may be paused, and how small its steps are."""

from core.steps import Pace, Steps, finish


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
