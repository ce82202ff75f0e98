"""However many queues there are to be decided on, no step of a pass is longer for it. In calls, not in time.

There may be one for each pod: whoever makes a pod writes the name of any queue to it, there or not.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.fakes.counted import longest_step

MARGIN = 1.3
FEW, MANY = 1_000, 4_000
CROWD, WOKEN = 400, 100


class Name(str):
    """One whose comparisons are calls, and so are counted."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __lt__(self, other: str) -> bool:
        return str(self) < str(other)

    def __eq__(self, other: object) -> bool:
        return str(self) == other


def a_queue_for_each(pods: int) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for number in range(pods):
        ledger.put_pod(a_pod(f"p{number:04}").gpu(1).card("A").in_queue(f"no-{number:04}").gated().view())
    return ledger


def passing(ledger: Ledger) -> Iterator[object]:
    return Planner(ledger).run(map(Name, ledger.wakeups.take_queues()))


def woken_meanwhile(ledger: Ledger) -> Iterator[object]:
    """While the first of them goes on, for its sums are not right, another hundred are woken that are to come later."""
    ledger.put_queue(a_queue("first").cards({"A": 8}).view())
    ledger.put_group(a_group("crowd").in_queue("other").min_member(1).view())
    running = a_pod("c").gpu(1).card("A").in_group("crowd").assigned({"A": 1}).bound_to("n").view()
    for number in range(CROWD):
        ledger.put_pod(replace(running, name=f"c{number}", uid=f"uid-c{number}"))
    for name in ("m", "n"):
        ledger.put_pod(a_pod(name).gpu(1).card("A").in_queue("first").gated().view())
    finish(ledger.settle())
    steps = passing(ledger)
    yield next(steps)
    ledger.put_group(a_group("crowd").in_queue("first").min_member(1).view())
    ledger.wakeups.look_at(*map(Name, sorted(ledger.accounts)[-WOKEN:]))
    yield from steps


@pytest.mark.parametrize("work", [passing, woken_meanwhile])
def test_no_step_is_longer_where_each_pod_names_a_queue_of_its_own(
    work: Callable[[Ledger], Iterator[object]],
) -> None:
    few, many = (longest_step(work(a_queue_for_each(pods))) for pods in (FEW, MANY))
    assert many < MARGIN * few
