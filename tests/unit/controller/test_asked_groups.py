"""Members of groups about whom a question is under way: who is decided on when."""

import pytest

from controller.asked_groups import AskedGroups
from controller.flight import Key

A, B, C = ("ml", "a"), ("ml", "b"), ("ml", "c")


def asked(*keys: Key, group: str = "ml/g") -> AskedGroups:
    groups = AskedGroups()
    for key in keys:
        groups.ask(group, key)
    return groups


def test_all_are_decided_on_with_the_last_answer() -> None:
    groups = asked(A, B, C)
    assert groups.answered(B, "ml/g", taken_in=True) == []
    assert groups.answered(A, "ml/g", taken_in=False) == []
    assert groups.is_asked_about("ml/g")
    assert groups.answered(C, "ml/g", taken_in=True) == [B, C]
    assert not groups.is_asked_about("ml/g")
    assert len(groups) == 0


def test_a_pod_of_no_group_waits_for_nobody() -> None:
    groups = asked(A, B, group="")
    assert not groups.is_asked_about("")
    assert groups.answered(A, "", taken_in=True) == [A]
    assert groups.answered(B, "", taken_in=False) == []
    assert len(groups) == 0


def test_one_that_was_answered_before_waits_for_those_that_are_asked_about() -> None:
    groups = asked(A)
    groups.wait("ml/g", B)
    assert groups.answered(A, "ml/g", taken_in=False) == [B]
    assert len(groups) == 0


def test_one_that_is_answered_without_having_been_asked_about_by_its_group_waits_as_well() -> None:
    """It was refused once, and its time has come."""
    groups = asked(A)
    assert groups.answered(B, "ml/g", taken_in=True) == []
    assert groups.answered(A, "ml/g", taken_in=True) == [B, A]
    assert groups.answered(C, "ml/g", taken_in=True) == [C]
    assert len(groups) == 0


@pytest.mark.parametrize("taken_in", [True, False])
def test_a_member_that_comes_to_another_group_meanwhile_keeps_nobody_of_the_former_waiting(
    *, taken_in: bool
) -> None:
    groups = asked(A)
    groups.wait("ml/g", B)
    assert groups.answered(A, "ml/other", taken_in=taken_in) == ([B, A] if taken_in else [B])
    assert not groups.is_asked_about("ml/g")
    assert len(groups) == 0


def test_one_that_waits_and_is_gone_is_not_decided_on() -> None:
    groups = asked(A)
    groups.wait("ml/g", B)
    assert groups.answered(B, "ml/g", taken_in=False) == []
    assert groups.answered(A, "ml/g", taken_in=True) == [A]
    assert len(groups) == 0


def test_one_that_waits_may_be_asked_about_again() -> None:
    groups = asked(A)
    groups.wait("ml/g", B)
    groups.ask("ml/g", B)
    assert groups.answered(A, "ml/g", taken_in=True) == []
    assert groups.answered(B, "ml/g", taken_in=True) == [A, B]
    assert len(groups) == 0


def test_nothing_is_left_of_a_term_that_is_over() -> None:
    groups = asked(A)
    groups.wait("ml/g", B)
    groups.clear()
    assert len(groups) == 0
    assert groups.answered(C, "ml/g", taken_in=True) == [C]
