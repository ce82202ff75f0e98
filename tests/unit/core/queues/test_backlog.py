"""Who is booked anew when, and for whom nobody waits."""

from core.queues.backlog import AT_ONCE, Backlog


class Books:
    """Notes who is booked; pods whose name begins with `c` hold what was granted, those with `w` nothing."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.devices: list[str] = []
        self.backlog = Backlog(self.booked.append, self.devices.append, lambda uid: uid.startswith("c"))


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


def test_nobody_is_booked_twice_for_one_change() -> None:
    books = Books()
    books.backlog.put(many("w"))
    books.backlog.put(many("w"))
    list(books.backlog.settle())
    assert sorted(books.booked) == sorted(many("w"))
