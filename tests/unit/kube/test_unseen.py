"""What is known by a read alone is gone when the watch has come past the read without it, and not before."""

import pytest

from kube.unseen import Unseen


def unseen() -> tuple[Unseen, list[str]]:
    lost: list[str] = []
    return Unseen(lost.append), lost


@pytest.mark.parametrize(
    ("read", "reached", "lost"),
    [("9", "10", True), ("10", "10", True), ("100", "99", False), ("", "10", False), ("9", "", False)],
)
def test_the_watch_has_come_past_what_is_no_later_than_its_version(
    read: str, reached: str, lost: bool
) -> None:
    them, gone = unseen()
    them.put("p", read)
    them.come_to(reached)
    assert gone == (["p"] if lost else [])


@pytest.mark.parametrize("read", ["5", "20", ""])
def test_a_list_that_began_after_the_read_has_all_that_there_is(read: str) -> None:
    """Whatever the versions say: those of a restored database begin anew."""
    them, gone = unseen()
    them.put("p", read)
    them.list_begins()
    them.listed("10")
    assert gone == ["p"]


@pytest.mark.parametrize(("read", "lost"), [("5", True), ("20", False), ("", False)])
def test_a_list_that_began_before_the_read_may_be_older_than_the_object(read: str, lost: bool) -> None:
    them, gone = unseen()
    them.list_begins()
    them.put("p", read)
    them.listed("10")
    assert gone == (["p"] if lost else [])


def test_what_is_read_again_during_a_list_is_not_known_to_be_gone_by_it() -> None:
    them, gone = unseen()
    them.put("p", "5")
    them.list_begins()
    them.put("p", "20")
    them.listed("10")
    assert gone == []
    them.list_begins()
    them.listed("11")
    assert gone == ["p"]


def test_a_list_that_was_not_finished_says_nothing() -> None:
    them, gone = unseen()
    them.put("p", "5")
    them.list_begins()
    them.put("q", "20")
    them.list_begins()
    assert gone == []
    them.listed("10")
    assert sorted(gone) == ["p", "q"]


def test_what_the_watch_has_shown_is_nobodys_to_look_after() -> None:
    them, gone = unseen()
    them.put("p", "5")
    them.list_begins()
    them.drop("p")
    them.drop("never read")
    them.listed("10")
    them.lose_all()
    assert gone == []


def test_each_is_lost_once() -> None:
    them, gone = unseen()
    them.put("p", "5")
    them.put("q", "5")
    them.come_to("6")
    them.lose_all()
    assert gone == ["p", "q"]
