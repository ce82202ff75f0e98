"""How small the steps of a pass are: counted by what is done between two pauses, whatever a machine takes for it."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from core.objects import Pod
from core.plan import course, effort, rotation
from core.plan.lift import Planner
from core.queues.entry import Entry
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.counting import Counted

MEMBERS = 400
IN_ONE_STEP = 8


C = TypeVar("C", bound=Counted)


def a_gang_that_lacks_one() -> Counted:
    return with_a_gang_that_lacks_one(Counted())


def with_a_gang_that_lacks_one(ledger: C) -> C:
    """One gang whose last member finds no room."""
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


class Compared(Counted):
    """Counts the members that are compared with what they were."""

    def current(self, entry: Entry) -> Entry | None:
        self.looked += 1
        return super().current(entry)

    def observed(self, uid: str) -> Pod | None:
        self.looked += 1
        return super().observed(uid)

    looked = 0


def looks_between_pauses(ledger: Compared, meanwhile: Callable[[int], object]) -> list[int]:
    """While the members of a gang are tried one by one, with something that happens at every pause."""
    found: list[int] = []
    before = 0
    for number, _ in enumerate(Planner(ledger).run(["q"])):
        found.append(ledger.looked - before)
        meanwhile(number)
        before = ledger.looked
    return found


def test_what_happens_to_others_while_a_gang_is_tried_costs_what_has_happened() -> None:
    """At each pause all members were looked at anew, whoever had changed."""
    ledger = with_a_gang_that_lacks_one(Compared())
    other = a_pod("other").gpu(1).card("A").in_queue("other")
    quiet = looks_between_pauses(with_a_gang_that_lacks_one(Compared()), lambda _number: None)
    busy = looks_between_pauses(ledger, lambda number: ledger.put_pod(other.priority(number).view()))
    assert len(busy) > MEMBERS // IN_ONE_STEP
    assert max(busy) <= max(quiet) + 4 * IN_ONE_STEP
    assert sum(busy) <= sum(quiet) + 4 * len(busy)


def test_when_too_much_has_happened_to_tell_what_all_members_are_looked_at_in_steps() -> None:
    ledger = with_a_gang_that_lacks_one(Compared())

    def crowd(number: int) -> None:
        if number == 60:
            for other in range(2000):
                ledger.put_pod(a_pod(f"other-{other}").gpu(1).card("A").in_queue("other").view())

    quiet = looks_between_pauses(with_a_gang_that_lacks_one(Compared()), lambda _number: None)
    found = looks_between_pauses(ledger, crowd)
    assert sum(found) >= sum(quiet) + MEMBERS - 1
    assert max(found) <= max(200, *quiet) + 2 * IN_ONE_STEP


def test_a_member_that_changes_among_many_others_has_the_gang_given_up() -> None:
    ledger = a_gang_that_lacks_one()
    changed = a_pod("p001").gpu(2).card("A").in_group("g").gated().view()

    def change() -> None:
        if ledger.used("q", "A") == 200_000:
            ledger.put_pod(a_pod("other").gpu(1).card("A").in_queue("other").view())
            ledger.put_pod(changed)

    assert max(writes_between_pauses(ledger, Planner(ledger), change)) <= 2 * IN_ONE_STEP
    assert ledger.used("q", "A") == 0


def test_a_pass_that_is_given_up_leaves_nothing_booked() -> None:
    ledger = a_gang_that_lacks_one()
    under_way = Planner(ledger).run(["q"])
    for _ in under_way:
        if ledger.used("q", "A") >= 200_000:
            break
    under_way.close()
    assert ledger.used("q", "A") >= 200_000, "that many are booked anew in steps, and until then as they were"
    assert not ledger.settled
    finish(ledger.settle())
    assert ledger.used("q", "A") == 0
    assert not [entry for entry in ledger.entries() if ledger.assumed(entry.pod.uid)]


DECIDED = 40
PASSED = 5


def a_gang_with_one_more() -> Counted:
    """All but the last are let in together; it is looked at alone, behind all of them."""
    ledger = Counted()
    ledger.put_node(a_node("n").card("A", MEMBERS).view())
    for queue in ("q", "other"):
        ledger.put_queue(a_queue(queue).cards({"A": MEMBERS}).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(DECIDED).view())
    for number in range(DECIDED + 1):
        ledger.put_pod(a_pod(f"p{number:03}").gpu(1).card("A").in_group("g").gated().view())
    return ledger


def after_the_gang(ledger: Counted, meanwhile: Callable[[], object] = lambda: None) -> list[str]:
    """What a pass yields once the gang is let in, '' for a pause; something happens at the first of them."""
    found: list[str] = []
    lifted = 0
    for item in Planner(ledger).run(["q"]):
        if lifted >= DECIDED:
            found.append("" if item is None else item.pod.name)
            if len(found) == 1:
                meanwhile()
        lifted += item is not None
    return found


def test_passing_by_those_who_were_decided_on_together_goes_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "_PASSED_IN_A_STEP", PASSED)
    before_the_last = after_the_gang(a_gang_with_one_more())
    assert before_the_last.index(f"p{DECIDED:03}") == DECIDED // PASSED - 1


def test_others_have_their_turn_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "_PASSED_IN_A_STEP", PASSED)
    monkeypatch.setattr(rotation, "BEFORE_OTHERS", 0)
    ledger = a_gang_with_one_more()

    def wake() -> None:
        ledger.put_pod(a_pod("urgent").gpu(1).card("A").in_queue("other").gated().view())

    lifted = [name for name in after_the_gang(ledger, wake) if name]
    assert lifted == ["urgent", f"p{DECIDED:03}"]
