"""However many queues there are to be decided on, no step of a pass is longer for it. In calls, not in time.

There may be one for each pod: whoever makes a pod writes the name of any queue to it, there or not.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from core.plan import effort
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.fakes.counted import longest_step
from tests.unit.core.plan.levels import THROUGH

MARGIN = 1.3
FEW, MANY = 1_000, 4_000
CROWD, GANG = 400, 300
PLENTY = effort.OF_A_PASS


class Name(str):
    """One whose comparisons are calls, and so are counted."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __lt__(self, other: str) -> bool:
        return str(self) < str(other)

    def __eq__(self, other: object) -> bool:
        return str(self) == other


def a_queue_for_each(pods: int, settings: Settings) -> Ledger:
    ledger = Ledger(settings)
    ledger.put_node(a_node("n").card("A", 8).view())
    for number in range(pods):
        ledger.put_pod(a_pod(f"p{number:04}").gpu(1).card("A").in_queue(f"no-{number:04}").gated().view())
    return ledger


def passing(ledger: Ledger) -> Iterator[object]:
    return Planner(ledger).run(map(Name, ledger.wakeups.take_queues()))


def woken_meanwhile(ledger: Ledger) -> Iterator[object]:
    """While the first of them goes on, for its sums are not right, all others are woken, and one more."""
    ledger.put_queue(a_queue("first").cards({"A": 8}).view())
    ledger.put_group(a_group("crowd").in_queue("other").min_member(1).view())
    running = a_pod("c").gpu(1).card("A").in_group("crowd").assigned({"A": 1}).bound_to("n").view()
    for number in range(CROWD):
        ledger.put_pod(replace(running, name=f"c{number}", uid=f"uid-c{number}"))
    for name in ("m", "n"):
        ledger.put_pod(a_pod(name).gpu(1).card("A").in_queue("first").gated().view())
    finish(ledger.settle())
    steps = passing(ledger)
    next(steps)
    ledger.put_group(a_group("crowd").in_queue("first").min_member(1).view())
    ledger.wakeups.look_at(*map(Name, ledger.accounts))
    return steps


def kept_back(ledger: Ledger) -> Iterator[object]:
    """All of them are below the root, whose quota a gang has yet to be given what it lacks of."""
    ledger.put_queue(a_queue("root").cards({"A": GANG}).view())
    ledger.put_queue(a_queue("first").cards({"A": GANG}).view())
    ledger.put_group(a_group("g").in_queue("first").min_member(GANG).view())
    member = a_pod("g").gpu(1).card("A").in_group("g").in_queue("first")
    ledger.put_pod(member.assigned({"A": 1}).charged("first").together(GANG).view())
    for number in range(1, GANG):
        ledger.put_pod(replace(member.gated().view(), name=f"g{number}", uid=f"uid-g{number}"))
    finish(ledger.settle())
    return passing(ledger)


@pytest.mark.parametrize(
    ("work", "effort_of_a_pass", "settings"),
    [(passing, PLENTY, Settings()), (woken_meanwhile, PLENTY, Settings()), (kept_back, 1, THROUGH)],
)
def test_no_step_is_longer_where_each_pod_names_a_queue_of_its_own(
    work: Callable[[Ledger], Iterator[object]],
    effort_of_a_pass: int,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effort, "OF_A_PASS", effort_of_a_pass)
    few, many = (longest_step(work(a_queue_for_each(pods, settings))) for pods in (FEW, MANY))
    assert many < MARGIN * few
