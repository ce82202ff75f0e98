"""How small the steps of a pass are: counted by what is done between two pauses, whatever a machine takes for it."""

from collections.abc import Callable, Iterator

import pytest

from core.plan import effort
from core.plan.lift import Planner
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.counting import Counted

MEMBERS = 400
IN_ONE_STEP = 8


def a_gang_that_lacks_one() -> Counted:
    """One gang whose last member finds no room."""
    ledger = Counted()
    ledger.put_node(a_node("n").card("A", MEMBERS).view())
    ledger.put_queue(a_queue("q").cards({"A": MEMBERS - 1}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(MEMBERS).view())
    for number in range(MEMBERS):
        ledger.put_pod(a_pod(f"p{number:03}").gpu(1).card("A").in_group("g").gated().view())
    return ledger


def writes_between_pauses(
    ledger: Counted, planner: Planner, meanwhile: Callable[[], object] = lambda: None
) -> Iterator[int]:
    before = ledger.writes
    for _ in planner.run(["q"]):
        yield ledger.writes - before
        before = ledger.writes
        meanwhile()


def test_a_gang_is_tried_and_given_back_in_steps() -> None:
    ledger = a_gang_that_lacks_one()
    writes = list(writes_between_pauses(ledger, Planner(ledger)))
    assert sum(writes) == 2 * (MEMBERS - 1)
    assert max(writes) <= IN_ONE_STEP


def test_a_gang_that_is_cut_short_is_given_back_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """That was one piece of most of a tenth of a second. The last booking and the first to be given back may be one step."""
    monkeypatch.setattr(effort, "OF_A_PASS", 40)
    ledger = a_gang_that_lacks_one()
    writes = list(writes_between_pauses(ledger, Planner(ledger)))
    assert 100 < sum(writes) < 2 * (MEMBERS - 1)
    assert max(writes) <= 2 * IN_ONE_STEP
    assert ledger.used("q", "A") == 0


def test_a_gang_whose_queue_closes_meanwhile_is_given_back_in_steps() -> None:
    ledger = a_gang_that_lacks_one()
    closed = a_queue("q").cards({"A": MEMBERS}).state("Closed").view()

    def close() -> None:
        if ledger.used("q", "A") >= 200_000 and ledger.queues["q"].open:
            ledger.put_queue(closed)

    writes = list(writes_between_pauses(ledger, Planner(ledger), close))
    assert 400 <= sum(writes) <= 2 * 200 + 4 * IN_ONE_STEP
    assert max(writes) <= 2 * IN_ONE_STEP


def test_a_pass_that_is_given_up_leaves_nothing_booked() -> None:
    ledger = a_gang_that_lacks_one()
    under_way = Planner(ledger).run(["q"])
    for _ in under_way:
        if ledger.used("q", "A") >= 200_000:
            break
    under_way.close()
    assert ledger.used("q", "A") == 0
