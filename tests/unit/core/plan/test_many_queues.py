"""However many queues there are to be decided on, no step of a pass is longer for it. In calls, not in time.

There may be one for each pod: whoever makes a pod writes the name of any queue to it, there or not.
"""

from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.fakes.counted import longest_step

MARGIN = 1.3
FEW, MANY = 1_000, 4_000


class Name(str):
    """One whose comparisons are calls, and so are counted."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str(self) < str(other)


def a_queue_for_each(pods: int) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for number in range(pods):
        ledger.put_pod(a_pod(f"p{number}").gpu(1).card("A").in_queue(f"no-{number}").gated().view())
    return ledger


def test_no_step_is_longer_where_each_pod_names_a_queue_of_its_own() -> None:
    found = []
    for pods in (FEW, MANY):
        ledger = a_queue_for_each(pods)
        found.append(longest_step(Planner(ledger).run(map(Name, ledger.wakeups.take_queues()))))
    few, many = found
    assert many < MARGIN * few
