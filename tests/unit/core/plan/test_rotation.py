"""No queue holds up another: how many decisions, and bookings, one of them may have before others come to their turn."""

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from core.plan import effort, rotation
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue

LIFTS_IN_A_STEP = 8


def books(**queues: int) -> Ledger:
    """So many pods wait in each queue, and each has quota for all of them."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for name, count in queues.items():
        ledger.put_queue(a_queue(name).cards({"A": max(count, 1)}).view())
        for number in range(count):
            put_pod(ledger, name, number)
    ledger.wakeups.take_queues()
    return ledger


def put_pod(ledger: Ledger, queue: str, number: int = 0, card: str = "A") -> None:
    ledger.put_pod(a_pod(f"{queue}-{number:04}").gpu(1).card(card).in_queue(queue).gated().view())


def passed(
    ledger: Ledger, *queues: str, after: Mapping[int, Callable[[], object]] | None = None
) -> list[Decision]:
    """The decisions of one pass; `after` so many of them something happens."""
    found: list[Decision] = []
    due = dict(after or {})
    for decision in Planner(ledger).run(queues):
        if decision is not None:
            found.append(decision)
        if len(found) in due:
            due.pop(len(found))()
    return found


def queues_of(decisions: list[Decision]) -> list[str]:
    return [decision.queue for decision in decisions]


def test_a_queue_that_is_woken_while_another_has_its_turn_does_not_wait_for_its_end() -> None:
    """With ten thousand lifts before it, it waited for seconds."""
    ledger = books(many=2000, small=0)
    found = queues_of(passed(ledger, "many", after={100: lambda: put_pod(ledger, "small")}))
    assert len(found) == 2001
    assert 100 <= found.index("small") <= rotation.BEFORE_OTHERS * LIFTS_IN_A_STEP


def test_it_does_not_wait_when_it_is_woken_again_and_again() -> None:
    ledger = books(many=4000, small=0)
    ledger.put_queue(a_queue("small").cards({"A": 9}).view())
    times = [500 * number for number in range(1, 7)]
    after = {time: partial(put_pod, ledger, "small", time) for time in times}
    found = queues_of(passed(ledger, "many", after=after))
    served = [place for place, queue in enumerate(found) if queue == "small"]
    assert len(served) == len(times)
    for time, place in zip(times, served, strict=True):
        assert place - time <= rotation.BEFORE_OTHERS * LIFTS_IN_A_STEP + len(times)


def test_the_last_queue_of_a_pass_does_not_wait_for_the_ends_of_all_others() -> None:
    share = effort.OF_A_PASS * LIFTS_IN_A_STEP // 2
    ledger = books(a=share + 1000, b=1)
    found = queues_of(passed(ledger, "a", "b"))
    assert found.index("b") == share
    assert len(found) == share + 1001


def test_each_of_several_large_queues_has_an_equal_share_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "OF_A_PASS", 30)
    found = queues_of(passed(books(a=200, b=200, c=200), "a", "b", "c"))
    assert [found[:240].count(queue) for queue in "abc"] == [80, 80, 80]
    assert [found.count(queue) for queue in "abc"] == [200, 200, 200]


def test_a_queue_that_was_left_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told twice, and nobody is forgotten."""
    monkeypatch.setattr(effort, "OF_A_PASS", 4)
    ledger = books(a=100, b=100)
    ledger.put_queue(a_queue("a").cards({"A": 50}).view())
    found = passed(ledger, "a", "b")
    assert len({decision.pod.uid for decision in found}) == len(found) == 200
    names = [decision.pod.name for decision in found if decision.queue == "a"]
    assert names == sorted(names)
    assert sum(isinstance(decision, Hold) for decision in found) == 50
    assert not ledger.wakeups.pending


def test_where_the_effort_suffices_the_order_stands() -> None:
    """Two queues want the one card that is left: who comes first in the order has it."""
    ledger = books(first=20, second=1)
    ledger.put_node(a_node("m").card("B", 1).view())
    ledger.put_queue(a_queue("first").cards({"A": 20, "B": 20}).priority(9).view())
    ledger.put_queue(a_queue("second").cards({"A": 1, "B": 1}).view())
    put_pod(ledger, "first", 9999, "C|B")
    put_pod(ledger, "second", 9999, "C|B")
    ledger.wakeups.take_queues()
    found = passed(ledger, "second", "first")
    lifted = [decision.pod.name for decision in found if isinstance(decision, Lift)]
    assert lifted[20:] == ["first-9999", "second-0000"]


def test_queues_that_are_woken_together_are_served_in_their_order() -> None:
    ledger = books(many=1000, low=0, high=0)
    ledger.put_queue(a_queue("high").cards({"A": 1}).priority(1).view())

    def wake() -> None:
        put_pod(ledger, "low")
        put_pod(ledger, "high")

    found = queues_of(passed(ledger, "many", after={100: wake}))
    assert found.index("low") == found.index("high") + 1 < 500


def test_a_pass_that_is_given_up_ends_those_that_were_left_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "OF_A_PASS", 4)
    ledger = books(a=100, b=100)
    under_way = Planner(ledger).run(["a", "b"])
    lifts = [decision for _, decision in zip(range(60), under_way, strict=False) if decision is not None]
    under_way.close()
    assert {entry.pod.uid for entry in ledger.entries() if ledger.assumed(entry.pod.uid)} == {
        lift.pod.uid for lift in lifts
    }
