"""What has changed since somebody looked, and when nobody can tell any more."""

import pytest

from core.queues.journal import Journal

KEPT = 1000


def noted(*keys: int) -> Journal[int]:
    journal = Journal[int]()
    for key in keys:
        journal.note(key)
    return journal


def test_what_has_changed_is_told_once_and_the_last_first() -> None:
    journal = noted(1, 2)
    before = journal.changes
    for key in (3, 4, 3):
        journal.note(key)
    assert journal.since(before) == [3, 4]
    assert journal.since(journal.changes) == []


@pytest.mark.parametrize("count", [0, 1, KEPT])
def test_several_that_change_together_are_told_one_by_one(count: int) -> None:
    journal = noted(-1)
    before = journal.changes
    journal.note_all(range(count))
    assert journal.since(before) == [*reversed(range(count))]
    assert journal.changes == before + count


@pytest.mark.parametrize("together", [True, False])
def test_of_more_than_are_kept_nobody_can_tell_who_has_looked_before(together: bool) -> None:
    journal = noted(-1)
    before = journal.changes
    if together:
        journal.note_all(range(KEPT + 1))
    else:
        for key in range(KEPT + 1):
            journal.note(key)
    assert journal.since(before) is None
    now = journal.changes
    assert now == before + KEPT + 1
    journal.note(7)
    assert journal.since(now) == [7]
