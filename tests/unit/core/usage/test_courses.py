"""What one pod has used and waited for."""

import pytest

from core.steps import finish
from core.usage.course import Charge, Sight
from core.usage.courses import REMEMBERED_S, Courses
from core.usage.sums import DAY_S, Series, What

NOW = 20_770 * DAY_S
Q, R = Series("q", "A", "n", "online"), Series("r", "A", "n", "online")


def summing() -> Courses:
    courses = Courses()
    courses.settled = True
    finish(courses.begin(None, NOW))
    return courses


def sums(courses: Courses, now: int) -> dict[tuple[str, str], int]:
    assert courses.tally is not None
    return {
        (series.queue, what.name): value // 1000
        for series in courses.tally.series()
        for what in What
        if (value := courses.tally.now(series, what, now))
    }


def charge(series: Series, cards: int = 1) -> Charge:
    return ((series, 1000 * cards),)


def test_from_creation_to_bind_it_waits_and_from_bind_to_end_it_uses() -> None:
    """By the times on the pod, however late it is seen; what goes on grows by itself."""
    courses = summing()
    courses.see("p", Sight(charge(Q, 2), NOW + 10, 0, None), NOW + 12)
    assert sums(courses, NOW + 20) == {("q", "WAITED"): 20}
    courses.see("p", Sight(charge(Q, 2), NOW + 10, NOW + 30, None), NOW + 90)
    assert sums(courses, NOW + 100) == {("q", "WAITED"): 40, ("q", "USED"): 140}
    courses.see("p", Sight(charge(Q, 2), NOW + 10, NOW + 30, NOW + 50), NOW + 500)
    assert sums(courses, NOW + 9000) == {("q", "WAITED"): 40, ("q", "USED"): 40}


def test_another_queue_counts_from_when_it_is_seen() -> None:
    courses = summing()
    courses.see("p", Sight(charge(Q), NOW, 0, None), NOW)
    courses.see("p", Sight(charge(R), NOW, 0, None), NOW + 10)
    assert sums(courses, NOW + 15) == {("q", "WAITED"): 10, ("r", "WAITED"): 5}


def test_before_all_is_seen_another_queue_counts_from_the_beginning() -> None:
    """A pod may be listed before what says which queue it charges."""
    courses = summing()
    courses.settled = False
    courses.see("p", Sight(charge(Q), NOW + 1, 0, None), NOW + 1)
    courses.see("p", Sight(charge(R), NOW + 1, 0, None), NOW + 10)
    assert sums(courses, NOW + 15) == {("r", "WAITED"): 14}


def test_a_pod_that_runs_on_after_it_gave_its_quota_back_is_counted_without_a_gap() -> None:
    courses = summing()
    courses.see("p", Sight(charge(Q), NOW + 1, NOW + 1, None), NOW + 1)
    courses.see("p", Sight(charge(Q), NOW + 1, NOW + 1, NOW + 11), NOW + 11)
    assert sums(courses, NOW + 100) == {("q", "USED"): 10}
    courses.see("p", Sight(charge(Q), NOW + 1, NOW + 1, None), NOW + 101)
    assert sums(courses, NOW + 201) == {("q", "USED"): 200}


@pytest.mark.parametrize("later", [NOW + 40, NOW + 4000])
def test_an_end_is_not_moved_by_who_looks_again(later: int) -> None:
    courses = summing()
    courses.see("p", Sight(charge(Q), NOW + 1, NOW + 1, NOW + 11), NOW + 11)
    courses.see("p", Sight(charge(Q), 0, 0, later), later)
    assert sums(courses, NOW + 9000) == {("q", "USED"): 10}


def test_what_was_there_before_anybody_counted_is_counted_from_then_on() -> None:
    courses = Courses()
    courses.see("p", Sight(charge(Q), NOW - 900, NOW - 500, None), NOW - 100)
    finish(courses.begin(None, NOW))
    assert sums(courses, NOW + 7) == {("q", "USED"): 7}


def test_quota_counts_as_it_stands() -> None:
    courses = summing()
    courses.set_quota("q", {"A": 4000}, NOW + 10)
    courses.set_quota("q", {"A": 1000, "B": 1000}, NOW + 20)
    assert sums(courses, NOW + 30) == {("q", "QUOTA"): 10}
    courses.set_quota("q", {}, NOW + 30)
    assert courses.tally is not None
    found = {s.card: courses.tally.now(s, What.QUOTA, NOW + 99) for s in courses.tally.series()}
    assert found == {"A": 4000 * 10 + 1000 * 10, "B": 1000 * 10}


def test_what_has_ended_is_forgotten_after_a_while_and_its_sum_is_not() -> None:
    courses = summing()
    courses.see("p", Sight(charge(Q), NOW + 1, NOW + 1, NOW + 11), NOW + 11)
    courses.see("o", Sight(charge(R), NOW, 0, None), NOW + REMEMBERED_S)
    assert courses.knows("p")
    courses.see("o", Sight(charge(R), NOW, NOW + 1, None), NOW + REMEMBERED_S + 12)
    assert not courses.knows("p")
    assert len(courses) == 1
    assert sums(courses, NOW + REMEMBERED_S)["q", "USED"] == 10


def test_who_has_no_cards_is_left_out() -> None:
    courses = summing()
    courses.see("p", Sight((), NOW, NOW, None), NOW)
    assert len(courses) == 0


@pytest.mark.parametrize("settled", [True, False])
def test_a_pod_that_goes_on_as_it_was_is_seen_without_a_trace(settled: bool) -> None:
    """Nine of ten states that are written of a pod say nothing new of what it uses."""
    courses = summing()
    courses.settled = settled
    for scheduled in (0, NOW + 30):
        sight = Sight(charge(Q, 2), NOW + 10, scheduled, None)
        courses.see("p", sight, NOW + 40)
        pieces, changes = courses._courses["p"].pieces, courses.changes
        courses.see("p", sight, NOW + 90)
        assert courses._courses["p"].pieces is pieces
        assert courses.changes == changes


def test_a_pod_that_is_back_after_its_end_goes_on() -> None:
    courses = summing()
    courses.see("p", Sight(charge(Q), NOW, NOW + 10, NOW + 20), NOW + 20)
    courses.see("p", Sight(charge(Q), NOW, NOW + 10, None), NOW + 30)
    assert sums(courses, NOW + 40) == {("q", "WAITED"): 10, ("q", "USED"): 30}
