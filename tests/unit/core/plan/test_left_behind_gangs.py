"""Gangs are let in only on sums that are right, whenever in a pass a crowd comes to count in their queue."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues import backlog
from core.queues.backlog import AT_ONCE, SIFTED_AT_ONCE
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.property.pieces import pieces

CROWD = AT_ONCE + 1
GANGS = 3
SIZE = 2
ROOM = CROWD + GANGS * SIZE
"""Beside the crowd there is room for all gangs but the last."""
QUOTA = ROOM - SIZE


@pytest.fixture(params=[SIFTED_AT_ONCE, 0], ids=["sifted at once", "sifted in steps"], autouse=True)
def sifted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in pieces():
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(backlog, "SIFTED_AT_ONCE", request.param)


def books(card: str) -> Ledger:
    """A crowd that runs, without a record of its queue, in a queue beside that of some gangs; nothing is left behind."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 2 * ROOM).view())
    ledger.put_queue(a_queue("q").cards({"A": QUOTA}).view())
    ledger.put_queue(a_queue("r").cards({"A": ROOM}).view())
    ledger.put_group(a_group("crowd").in_queue("r").min_member(1).view())
    running = a_pod("c").gpu(1).card("A").in_group("crowd").assigned({"A": 1}).bound_to("n").view()
    for number in range(CROWD):
        ledger.put_pod(replace(running, name=f"c{number:03}", uid=f"uid-{number:03}"))
    for gang in range(GANGS):
        ledger.put_group(a_group(f"gang{gang}").in_queue("q").min_member(SIZE).view())
        for number in range(SIZE):
            member = a_pod(f"m{gang}-{number}").gpu(1).card(card).in_group(f"gang{gang}").gated()
            ledger.put_pod(member.view())
    finish(ledger.settle())
    return ledger


def let_in_after_the_crowd(pause: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[str] | None:
    """Who is booked as let in by one pass after the crowd has come, which it does at this pause; None when the pass has fewer.

    One who was booked before is let in rightly, whenever that is said. Whenever the crowd comes, the pass lets in all gangs but
    one: no more than the one that it was about is put off.
    """
    booked: list[str] = []
    come, pauses, let_in = False, 0, 0

    def noting(book: Callable[[Pod], None]) -> Callable[[Pod], None]:
        def noted(lifted: Pod) -> None:
            if come:
                assert ledger.sums_settled, f"nobody knows what is left for {lifted.name}, pause {pause}"
                booked.append(lifted.name)
            book(lifted)

        return noted

    for name in ("let_in", "assume"):
        monkeypatch.setattr(ledger, name, noting(getattr(ledger, name)))
    for decision in Planner(ledger).run(["q"]):
        pauses += decision is None
        let_in += isinstance(decision, Lift)
        if decision is None and pauses == pause:
            ledger.put_group(a_group("crowd").in_queue("q").min_member(1).view())
            come = True
    assert let_in >= (GANGS - 1) * SIZE, f"pause {pause}"
    return booked if come else None


@pytest.mark.parametrize("card", ["A", "A|B"])
def test_no_gang_of_a_course_is_let_in_on_sums_that_are_not_right(
    card: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crowd comes at each pause of the pass in turn; whoever is let in after it is within the quota."""
    after: set[int] = set()
    pauses = count(1)
    while True:
        ledger, pause = books(card), next(pauses)
        booked = let_in_after_the_crowd(pause, ledger, monkeypatch)
        finish(ledger.settle())
        if booked is None:
            break
        after.add(len(booked))
        assert ledger.used("q", "A") >= CROWD * 1000
        assert not booked or ledger.used("q", "A") <= QUOTA * 1000, f"pause {pause}"
    assert ledger.used("q", "A") == GANGS * SIZE * 1000, "without the crowd all of them fit"
    assert max(after) == (GANGS - 1) * SIZE, "all but the last fit beside the crowd"
    assert min(after) == 0
