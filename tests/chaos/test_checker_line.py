"""The judge sees who was passed by in a fifo queue, and nothing where the order was kept or nobody could keep it."""

import pytest

from tests.chaos.checker import Disturbance
from tests.chaos.handmade import CONTROLLER, Log

LONG_S = 20.0


@pytest.fixture
def log() -> Log:
    """A fifo queue of two cards, and who stands in its line: three cards first, then one."""
    made = Log()
    made.lead()
    made.node("n")
    made.queue("q", strategy="fifo", A=2)
    made.pod("large", count=3)
    made.wait(1)
    made.pod("small")
    made.wait(LONG_S)
    return made


def test_who_is_let_in_while_somebody_before_it_goes_on_waiting_is_found(log: Log) -> None:
    log.lift("small")
    log.wait(LONG_S)
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("line", "ns/small")
    assert "let in before ns/large" in found.text


def test_in_any_other_queue_one_that_does_not_fit_is_passed_by(log: Log) -> None:
    log.queue("other", A=2)
    for name, count in (("l", 3), ("s", 1)):
        log.pod(name, queue="other", count=count)
    log.wait(LONG_S)
    log.lift("s", queue="other")
    log.wait(LONG_S)
    assert log.rules() == []


def test_the_order_is_priority_then_age_then_name(log: Log) -> None:
    log.set_quota("q", A=8)
    log.pod("urgent", priority=5)
    log.pod("b")
    log.pod("a")
    log.wait(LONG_S)
    log.lift("urgent")
    log.lift("large")
    log.lift("small")
    log.wait(LONG_S)
    assert log.rules() == []
    log.lift("b")
    log.wait(LONG_S)
    assert log.rules() == ["line"]


def test_of_two_that_are_let_in_at_once_either_may_be_stored_first(log: Log) -> None:
    log.set_quota("q", A=4)
    log.lift("small")
    log.wait(0.5)
    log.lift("large")
    assert log.rules() == []


def test_one_of_whom_the_leader_could_not_know_is_not_passed_by(log: Log) -> None:
    log.delete("large")
    log.pod("urgent", priority=5, count=3)
    log.lift("small")
    log.wait(LONG_S)
    assert log.rules() == []


def test_who_waits_for_something_of_its_own_keeps_nobody_waiting(log: Log) -> None:
    """Other members of its gang, or that the API server takes its lift in."""
    log.delete("large")
    log.group("g", "q", 2)
    log.pod("member", group="g", priority=5)
    log.pod("refused", priority=5)
    log.wait(LONG_S)
    log.request("patch", "pods", "refused", CONTROLLER, code=500)
    log.lift("small")
    log.wait(LONG_S)
    assert log.rules() == []


def test_who_was_disturbed_may_follow_once_that_is_over(log: Log) -> None:
    began = log.now
    log.set_quota("q", A=4)
    log.lift("small")
    log.wait(LONG_S)
    log.lift("large")
    assert log.rules(Disturbance(began, log.now - 1)) == []
    assert log.rules() == ["line"]


def test_at_rest_who_stands_behind_is_not_starving_and_the_first_is(log: Log) -> None:
    """One card is free: the large one does not fit, and keeps the small one waiting."""
    log.set_quota("q", A=1)
    log.wait(LONG_S)
    log.census()
    assert log.rules() == []
    log.set_quota("q", A=3)
    log.wait(LONG_S)
    log.census()
    assert log.rules() == ["starving"]
