"""Runs what is in steps as a driver does, with something to happen at every pause."""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from core.plan.decision import Decision
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.steps import Steps, finish

T = TypeVar("T")

_ENOUGH: Final = 1000
"""More passes in a row come to no end."""


def stepped(steps: Steps[T], pause: Callable[[], object]) -> T:
    """The result; `pause` is called at each pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        pause()


def all_passes(ledger: Ledger) -> Iterator[Decision | None]:
    """Passes until nobody is left to be looked at again: the first ones may be too short for a large gang."""
    planner = Planner(ledger)
    for _ in range(_ENOUGH):
        finish(ledger.settle())
        queues = ledger.wakeups.take_queues()
        if not queues:
            return
        yield from planner.run(queues)
    raise AssertionError("passes without end")
