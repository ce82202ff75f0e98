"""What was read beside the watch, and what the watch shows afterwards: the later one stands, in whatever order they come."""

from dataclasses import replace

import pytest

from controller.readings import Readings
from core.objects import Pod
from tests.builders import a_pod


def seen(version: str, uid: str = "u") -> Pod:
    """A state of a pod that waits for a node, of which each counts."""
    return replace(a_pod("p").gated().view(), uid=uid, resource_version=version, revision=version)


def running(version: str) -> Pod:
    """A state of a pod that has a node, like every other one."""
    return replace(a_pod("p").bound_to("n").view(), uid="u", resource_version=version)


@pytest.mark.parametrize(
    ("found", "shown", "later"),
    [
        (seen("10"), None, False),
        (seen("10"), seen("9"), True),
        (seen("10"), seen("10"), False),
        (seen("9"), seen("10"), False),
        # Numbers, not texts.
        (seen("100"), seen("99"), True),
        (seen("99"), seen("100"), False),
        (seen("18446744073709551616"), seen("18446744073709551615"), True),
        # Another pod of the name, made before or after.
        (seen("1", "other"), seen("9"), False),
        (seen("10", "other"), seen("9"), True),
        # What is no number says nothing about the order.
        (seen(""), seen("9"), False),
        (seen("x1"), seen(""), False),
        (seen("9"), seen(""), True),
        (seen("٣"), seen("2"), True),
    ],
)
def test_what_was_read_outdates_what_is_shown_only_where_it_is_later(
    found: Pod, shown: Pod | None, later: bool
) -> None:
    assert Readings().outdates(found, shown) is later


@pytest.mark.parametrize(
    ("read", "shown", "admitted"),
    [("10", "9", False), ("10", "10", False), ("10", "11", True), ("10", "", False), ("", "9", True)],
)
def test_an_older_state_is_not_put_over_one_that_was_read(read: str, shown: str, admitted: bool) -> None:
    readings = Readings()
    readings.put(seen(read))
    assert readings.admit(seen(shown)) is admitted


def test_once_the_watch_has_caught_up_its_word_stands() -> None:
    """Even of a version that looks older: a restored database begins anew."""
    readings = Readings()
    readings.put(seen("10"))
    assert not readings.admit(seen("9"))
    assert not readings.admit(seen("10")), "it is booked already"
    assert readings.admit(seen("3"))


def test_what_says_the_same_as_what_was_read_is_no_news_either() -> None:
    readings = Readings()
    readings.put(running("10"))
    assert not readings.admit(running("12"))
    assert readings.admit(seen("13"))


def test_the_latest_state_is_the_one_that_was_read_until_the_watch_has_caught_up() -> None:
    readings = Readings()
    readings.put(seen("10"))
    assert readings.latest(seen("9")).resource_version == "10"
    assert readings.latest(seen("9", "other")).resource_version == "9"
    readings.admit(seen("11"))
    assert readings.latest(seen("11")).resource_version == "11"


def test_a_pod_that_was_found_to_be_gone_is_not_shown_any_more() -> None:
    """Until the watch says so too: then its name, and a UID that comes back from nowhere, are as new."""
    readings = Readings()
    readings.put_gone("u")
    assert not readings.admit(seen("10"))
    assert readings.admit(seen("10", "other"))
    readings.drop("u")
    assert readings.admit(seen("10"))


def test_nothing_is_kept_of_what_the_watch_has_caught_up_with() -> None:
    readings = Readings()
    for number in range(100):
        readings.put(seen("10", f"u{number}"))
        readings.put_gone(f"g{number}")
    for number in range(50):
        readings.admit(seen("11", f"u{number}"))
        readings.drop(f"g{number}")
    for number in range(50, 100):
        readings.drop(f"u{number}")
        readings.drop(f"g{number}")
    assert (readings._read, readings._gone) == ({}, set())


@pytest.mark.parametrize(
    ("version", "uid", "known"),
    [("10", "u", True), ("11", "u", False), ("10", "other", False), ("", "u", False)],
)
def test_a_state_that_was_read_is_not_made_of_its_text_again(version: str, uid: str, known: bool) -> None:
    readings = Readings()
    read = seen("10")
    readings.put(read)
    readings.put(seen("", "blank"))
    shown = {"metadata": {"uid": uid, "resourceVersion": version}}
    assert readings.known(shown) is (read if known else None)
    assert readings.known({"metadata": {"uid": "blank", "resourceVersion": ""}}) is None
    assert readings.known({}) is None
