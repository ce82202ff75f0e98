"""Of gangs that ask for the same one is searched for, and the others are left for it: they do not wait by themselves."""

from typing import Any

import pytest

from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.trial import LedgerTrial, OvertakenError
from core.plan.turn import Turn
from core.queues.ledger import Ledger
from core.steps import Steps
from tests.unit.core.plan.costly import Crowd, books, members

OF_A_MEMBER = 40


@pytest.fixture(autouse=True)
def _slow(little_effort: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member costs four times as much as a pass may."""
    take = LedgerTrial.take

    def slowly(self: LedgerTrial, *of: Any) -> Steps[bool]:
        for _ in range(OF_A_MEMBER):
            yield
        return (yield from take(self, *of))

    monkeypatch.setattr(LedgerTrial, "take", slowly)


def finish_pass(planner: Planner, ledger: Ledger) -> list[str]:
    decisions = planner.run(ledger.wakeups.take_queues())
    return [each.pod.name for each in decisions if isinstance(each, Lift)]


def lifted_in(ledger: Ledger, most: int) -> list[str]:
    """Who is lifted in so many passes at the most, as long as anything is left to be done."""
    planner, lifted = Planner(ledger), list[str]()
    for _ in range(most):
        if not ledger.wakeups.pending:
            return lifted
        lifted += finish_pass(planner, ledger)
    raise AssertionError(f"not within {most} passes")


@pytest.mark.parametrize("gangs", [["g", "h"], [f"g{number}" for number in range(5)]])
def test_where_nobody_waits_they_are_decided_on_at_once(gangs: list[str]) -> None:
    """Some thousands of passes followed each other, for the first one was not begun because of the second."""
    assert lifted_in(books(*gangs), 6 * len(gangs)) == members(*gangs)


def test_so_they_are_though_others_wait_all_the_time() -> None:
    crowd = Crowd(books("g", "h"))
    crowd.until(lambda: crowd.lifted(*members("g", "h")))


def test_only_who_is_overtaken_waits_for_the_next_pass_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others one comes last, and the other one after it."""
    left, leaves = list[bool](), Turn.leaves

    def noted(self: Turn, *, fell_short: bool, waits: bool) -> None:
        left.append(waits)
        leaves(self, fell_short=fell_short, waits=waits)

    def overtaken(_self: LedgerTrial, *_of: Any) -> Steps[bool]:
        yield
        raise OvertakenError

    monkeypatch.setattr(Turn, "leaves", noted)
    ledger = books("g", "h")
    planner = Planner(ledger)
    finish_pass(planner, ledger)
    assert left == [True, False]
    left.clear()
    for _ in zip(planner.run(ledger.wakeups.take_queues()), range(4), strict=False):
        pass
    assert left == [False, False]
    left.clear()
    monkeypatch.setattr(LedgerTrial, "take", overtaken)
    ledger = books("g", "h")
    finish_pass(Planner(ledger), ledger)
    assert left == [True, True]
