"""Pods that go on coming while their queue has its turn hold up nobody: a turn is about as many as wait when it begins."""

from collections.abc import Iterator

import pytest

from core.plan.decision import Decision, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.unit.core.plan.stepping import all_passes

WAITING, MORE = 20, 300
FIRST, BETWEEN, LAST = 9, 5, 0
"""Priorities of those who wait when a turn begins, half of them each, and of who comes between those."""


def comes(ledger: Ledger, number: int, *, card: str = "A", priority: int = LAST) -> None:
    """One more pod. All with one card ask for the same; who comes later is younger."""
    at = f"2024-01-01T00:{number // 60:02}:{number % 60:02}Z"
    pod = a_pod(f"p{number:03}").gpu(1).card(card).in_queue("q").priority(priority).gated().created(at)
    ledger.put_pod(pod.view())


def books(waiting: int = WAITING, *, fifo: bool = False) -> Ledger:
    """There is room and quota for everybody."""
    ledger = Ledger(Settings())
    for card in "AB":
        ledger.put_node(a_node(card.lower()).card(card, 1000).view())
    queue = a_queue("q").cards({"A": 1000, "B": 1000})
    ledger.put_queue((queue.fifo() if fifo else queue).view())
    for number in range(waiting):
        comes(ledger, number, priority=FIRST if number < waiting // 2 else LAST)
    return ledger


def lifted(decisions: Iterator[Decision | None], happening: Iterator[object]) -> list[str]:
    """Who is let in, in order; after each of them something happens."""
    found: list[str] = []
    for decision in decisions:
        if isinstance(decision, Lift):
            found.append(decision.pod.name)
            next(happening, None)
    return found


def one_more_each_time(ledger: Ledger, priority: int) -> Iterator[None]:
    for number in range(WAITING, WAITING + MORE):
        comes(ledger, number, priority=priority)
        yield


at_either_place = pytest.mark.parametrize("priority", [BETWEEN, LAST])


@at_either_place
@pytest.mark.parametrize("fifo", [False, True])
def test_who_asks_for_something_else_does_not_wait_until_no_more_come(priority: int, fifo: bool) -> None:
    """He was looked at after the turn, and that ended when nobody came any more."""
    ledger = books(fifo=fifo)

    def happening() -> Iterator[None]:
        more = one_more_each_time(ledger, priority)
        yield next(more)
        comes(ledger, 999, card="B", priority=FIRST)
        yield
        yield from more

    order = lifted(all_passes(ledger), happening())
    assert order.index("p999") <= WAITING
    assert len({*order}) == len(order) == WAITING + MORE + 1, "nobody is left"


@at_either_place
def test_a_pass_ends_although_more_come_who_ask_for_the_same(priority: int) -> None:
    ledger = books()
    order = lifted(Planner(ledger).run(["q"]), one_more_each_time(ledger, priority))
    assert len(order) == WAITING
    assert ledger.wakeups.take_queues() == ["q"]


def test_who_goes_meanwhile_takes_nobodys_turn_with_him() -> None:
    ledger = books()
    uids = (a_pod(f"p{number:03}").view().uid for number in range(1, WAITING, 2))
    order = lifted(Planner(ledger).run(["q"]), map(ledger.drop_pod, uids))
    assert order == [f"p{number:03}" for number in range(0, WAITING, 2)]


@pytest.mark.parametrize("waiting", [1, 2, 3])
def test_as_many_as_wait_are_looked_at_and_no_less(waiting: int) -> None:
    order = lifted(Planner(books(waiting)).run(["q"]), iter(()))
    assert order == [f"p{number:03}" for number in range(waiting)]
