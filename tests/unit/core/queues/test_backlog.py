"""Who is booked anew when, and for whom nobody waits."""

from itertools import pairwise

import pytest

from core.queues import backlog
from core.queues.backlog import AT_ONCE, SIFTED_AT_ONCE, Backlog


class Books:
    """Notes who is booked; pods whose name begins with `c` hold what was granted, those with `w` nothing."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.devices: list[str] = []
        self.looked_at: list[str] = []
        self.behind: list[str] = []
        self.backlog = Backlog(self.booked.append, self._book_devices, self._holds, self.behind.append)

    def _book_devices(self, uid: str) -> None:
        assert uid in self.behind
        self.devices.append(uid)

    def _holds(self, uid: str) -> bool:
        self.looked_at.append(uid)
        return uid.startswith("c")


@pytest.fixture(params=[SIFTED_AT_ONCE, 0], ids=["sifted at once", "sifted in steps"], autouse=True)
def sifted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", request.param)


def many(letter: str, count: int = AT_ONCE + 1) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


def test_a_few_are_booked_at_once_and_many_in_steps() -> None:
    books = Books()
    books.backlog.put(many("w", AT_ONCE))
    assert len(books.booked) == AT_ONCE
    books.backlog.put(many("w"))
    assert len(books.backlog) == AT_ONCE + 1
    assert "w0" in books.backlog
    steps = list(books.backlog.settle())
    assert not books.backlog
    assert len(steps) > 1
    assert len(books.booked) == 2 * AT_ONCE + 1


def test_who_is_part_of_a_sum_comes_first_and_is_waited_for_however_often_he_comes() -> None:
    books = Books()
    books.backlog.put(many("w"))
    books.backlog.put(many("c"))
    again = 3
    for _ in books.backlog.settle():
        if again and not books.backlog.of_sums:
            again -= 1
            books.backlog.put(many("c"))
    assert not books.backlog.of_sums
    assert books.booked[: AT_ONCE + 1] == many("c")
    assert sum(uid.startswith("c") for uid in books.booked) == 4 * (AT_ONCE + 1)


def test_who_holds_nothing_is_not_waited_for_when_he_comes_again_and_again() -> None:
    books = Books()
    books.backlog.put(many("w"))
    for turn, _ in enumerate(books.backlog.settle()):
        assert turn < 100, "it ends though somebody puts them back at each step"
        books.backlog.put(many("w"))
    assert len(books.backlog) > 0
    assert not books.backlog.of_sums


def test_the_sums_are_settled_without_those_who_hold_nothing() -> None:
    books = Books()
    books.backlog.put((*many("w"), *many("c")))
    list(books.backlog.settle_sums())
    assert sorted(books.booked) == sorted(many("c"))
    assert not books.backlog.of_sums
    assert len(books.backlog) == AT_ONCE + 1


def test_of_whom_devices_alone_have_changed_all_is_booked_only_if_something_else_has_as_well() -> None:
    books = Books()
    assert not books.backlog.put_devices(many("w", AT_ONCE)), "a few are left to the caller"
    assert books.backlog.put_devices((*many("w"), *many("c")))
    books.backlog.put([*many("w")[3:], "w-other"])
    list(books.backlog.settle())
    assert sorted(books.devices) == sorted((*many("c"), "w0", "w1", "w2"))
    assert sorted(books.booked) == sorted([*many("w")[3:], "w-other"])


@pytest.mark.parametrize("many_more", [SIFTED_AT_ONCE, 100])
def test_whose_devices_have_changed_begins_to_wait_in_steps_if_they_are_very_many(
    many_more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until all have begun anybody may be one of them, and hold something."""
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", many_more)
    monkeypatch.setattr(backlog, "_TAKEN_IN_ONE_STEP", 60)
    books = Books()
    assert books.backlog.put_devices(many("w", many_more))
    assert books.behind == many("w", many_more), "so many begin in the event"
    assert not books.backlog.coming
    assert "x0" not in books.backlog
    crowd = many("x", many_more + 1)
    assert books.backlog.put_devices(crowd)
    crowd.clear()
    assert (books.backlog.coming, books.backlog.of_sums, len(books.backlog)) == (
        True,
        True,
        2 * many_more + 1,
    )
    assert "anybody" in books.backlog
    begun = [len(books.behind), *(len(books.behind) for _ in books.backlog.sift())]
    assert max(later - earlier for earlier, later in pairwise(begun)) == 60
    assert books.behind == [*many("w", many_more), *many("x", many_more + 1)]
    assert (books.backlog.coming, books.backlog.of_sums, len(books.backlog)) == (
        False,
        False,
        2 * many_more + 1,
    )
    assert "anybody" not in books.backlog
    assert not books.devices
    list(books.backlog.settle())
    assert sorted(books.devices) == sorted([*many("w", many_more), *many("x", many_more + 1)])


def test_who_is_booked_before_he_has_begun_to_wait_is_booked_once_more_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What he was booked with may have been read before the change."""
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", 0)
    books = Books()
    books.backlog.put_devices(many("w"))
    books.backlog.put(["w0"])
    list(books.backlog.settle())
    assert "w0" in books.booked
    assert sorted(books.devices) == sorted(many("w")[1:])


def test_of_those_who_are_alike_who_came_first_is_booked_first() -> None:
    books = Books()
    books.backlog.put([uid for pair in zip(many("w"), many("c"), strict=True) for uid in pair])
    list(books.backlog.settle())
    assert books.booked == [*many("c"), *many("w")]


def test_nobody_is_booked_twice_for_one_change() -> None:
    books = Books()
    books.backlog.put(many("w"))
    books.backlog.put(many("w"))
    list(books.backlog.settle())
    assert sorted(books.booked) == sorted(many("w"))


@pytest.mark.parametrize("most", [SIFTED_AT_ONCE, 100])
def test_of_more_than_one_event_has_time_for_it_is_found_out_in_steps_who_holds_something(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", most)
    books = Books()
    books.backlog.put(many("w", most))
    assert books.looked_at == many("w", most), "so many are looked at in the event"
    books.looked_at.clear()
    books.backlog.put(many("x", most + 1))
    assert not books.looked_at
    of_sums = [books.backlog.of_sums]
    assert len(books.backlog) == 2 * most + 1
    assert "x0" in books.backlog
    steps = len(list(books.backlog.sift()))
    assert steps == most // 512, "a pause between two of them, and none after the last"
    assert sorted(books.looked_at) == sorted(many("x", most + 1))
    assert [*of_sums, books.backlog.of_sums] == [True, False], "one of them might hold something"
    assert not books.booked
    assert len(books.backlog) == 2 * most + 1


def test_it_is_known_of_everybody_though_they_come_again_at_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", 0)
    monkeypatch.setattr(backlog, "_SIFTED_IN_ONE_STEP", 1)
    books = Books()
    books.backlog.put(many("w"))
    for turn, _ in enumerate(books.backlog.settle_sums()):
        assert turn <= AT_ONCE + 1, "it ends though somebody puts them back at each step"
        books.backlog.put(many("w"))
    assert not books.backlog.of_sums
    assert not books.booked


def test_who_comes_to_hold_something_while_he_waits_is_part_of_a_sum() -> None:
    books = Books()
    books.backlog.put_devices(many("w"))
    list(books.backlog.sift())
    books.backlog.note_granted("w3")
    books.backlog.note_granted("nobody")
    assert books.backlog.of_sums
    list(books.backlog.settle_sums())
    assert (books.booked, books.devices) == ([], ["w3"])
    assert len(books.backlog) == AT_ONCE
    assert "nobody" not in books.backlog


def test_who_waits_for_his_devices_is_booked_whole_if_the_rest_changes_before_or_after_he_is_looked_at() -> (
    None
):
    for sift in (False, True):
        for first, second in (("put", "put_devices"), ("put_devices", "put")):
            books = Books()
            getattr(books.backlog, first)(many("w"))
            if sift:
                list(books.backlog.sift())
            getattr(books.backlog, second)(many("w"))
            list(books.backlog.settle())
            assert (sorted(books.booked), books.devices) == (sorted(many("w")), [])


def test_whoever_settles_is_told_when_some_have_begun_to_wait_and_not_of_those_booked_at_once() -> None:
    books, told = Books(), list[int]()
    books.backlog.follower = lambda: told.append(len(books.backlog))
    books.backlog.put(many("w", AT_ONCE))
    assert told == []
    books.backlog.put(many("c"))
    books.backlog.put_devices(many("w"))
    assert told == [AT_ONCE + 1, 2 * (AT_ONCE + 1)]


def test_very_many_begin_to_wait_in_steps_though_all_of_them_is_to_be_booked_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dictionary of all of them in the event took 20 ms for 100,000. Until all have begun anybody may be one of them."""
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", 100)
    monkeypatch.setattr(backlog, "_TAKEN_IN_ONE_STEP", 60)
    books = Books()
    books.backlog.put(many("w", 101))
    assert (books.backlog.coming, books.backlog.of_sums, len(books.backlog)) == (True, True, 101)
    assert not books.looked_at
    assert "anybody" in books.backlog
    seen = [0, *(len(books.looked_at) for _ in books.backlog.sift()), len(books.looked_at)]
    assert max(later - earlier for earlier, later in pairwise(seen)) == 60
    assert (books.backlog.coming, books.backlog.of_sums, len(books.backlog)) == (False, False, 101)
    list(books.backlog.settle())
    assert (books.booked, books.behind) == (many("w", 101), [])


def test_where_others_wait_very_many_begin_at_once_so_that_nobody_passes_for_one_of_them_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", 100)
    books = Books()
    books.backlog.put(many("w", 101))
    list(books.backlog.sift())
    for _ in range(3):
        books.backlog.put(many("w", 101))
        assert not books.backlog.coming
        assert "anybody" not in books.backlog
        assert not books.backlog.of_sums, "of each of them it is known"
    list(books.backlog.settle())
    assert books.booked == many("w", 101)
