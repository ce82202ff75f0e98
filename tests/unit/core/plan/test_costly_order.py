"""While somebody costly is decided on nobody goes before who comes after, and nothing of it stays when it changes."""

from itertools import count

import pytest

from core.plan import effort
from core.plan.decision import Lift
from core.plan.patience import MOST
from core.plan.units import Unit
from tests.builders import a_group, a_pod, a_queue
from tests.unit.core.plan.costly import (
    A_LITTLE,
    AT_FIRST,
    MUCH,
    SIZE,
    Crowd,
    Tries,
    books,
    costly_gangs,
    costly_pods,
    member,
    members,
    much,
    put_gang,
    put_pod,
)

pytestmark = pytest.mark.usefixtures("little_effort")


# -- order and precedence hold meanwhile ---------------------------------------------------------------------------------


def test_nobody_is_let_in_before_a_costly_gang_at_the_head_of_a_fifo_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costly_gangs(monkeypatch, much)
    ledger = books("g", fifo=True)
    put_pod(ledger, "behind", "q")
    crowd = Crowd(ledger)
    crowd.until(lambda: crowd.lifted("behind"))
    assert crowd.passes > 2 * MOST
    assert [each.pod.name for each in crowd.told if isinstance(each, Lift)] == [*members("g"), "behind"]
    assert len(crowd.told) == SIZE + 1


def test_nor_before_a_costly_pod_there(monkeypatch: pytest.MonkeyPatch) -> None:
    costly_pods(monkeypatch, lambda entry: MUCH * (entry.pod.name == "a"))
    ledger = books(fifo=True)
    for number, name in enumerate("ab", 1):
        ledger.put_pod(a_pod(name).gpu(number).card("A").in_queue("q").gated().view())
    crowd = Crowd(ledger)
    crowd.until(lambda: crowd.lifted("b"))
    assert crowd.passes > 2 * MOST
    assert [each.pod.name for each in crowd.told] == ["a", "b"]


@pytest.mark.parametrize("hierarchy", [False, True])
def test_nor_before_an_unfinished_gang(monkeypatch: pytest.MonkeyPatch, *, hierarchy: bool) -> None:
    """Nor, with quotas that hold through the tree of queues, in a queue beside it."""
    costly_gangs(monkeypatch, much)
    ledger = books("g", let_in=2, cards={"hierarchy": hierarchy})
    behind = "r" if hierarchy else "q"
    if hierarchy:
        ledger.put_queue(a_queue("top").cards({"A": 10_000}).view())
        for name in ("q", "r"):
            queue = a_queue(name).cards({"A": 10_000}).put("spec", "parent", value="top")
            ledger.put_queue(queue.view())
    put_pod(ledger, "behind", behind)
    crowd = Crowd(ledger)
    crowd.until(lambda: crowd.lifted("behind"))
    assert crowd.passes > 2 * MOST
    order = [each.pod.name for each in crowd.told if isinstance(each, Lift)]
    assert order == [*members("g", beginning=2), "behind"]


# -- nothing of it stays when it changes ---------------------------------------------------------------------------------


def worn_out(crowd: Crowd, tries: Tries) -> None:
    """Until tries are so long that the next one is far away."""
    crowd.until(lambda: max(tries.steps, default=0) > 16 * AT_FIRST)


def test_a_gang_whose_minimum_is_lowered_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def needs(unit: Unit) -> int:
        return 10**9 if unit.progress is not None and unit.progress.minimum.members >= SIZE else A_LITTLE

    tries = costly_gangs(monkeypatch, needs)
    crowd = Crowd(books("g"), "other", "another")
    crowd.until(lambda: len(tries.long) > 5)
    crowd.ledger.put_group(a_group("g").in_queue("q").min_member(2).view())
    crowd.until(lambda: crowd.lifted("g-0", "g-1"), most=5)


def test_so_is_one_of_which_members_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = costly_gangs(monkeypatch, lambda unit: 10**9 if len(unit.entries) > 4 else A_LITTLE)
    ledger = books()
    put_gang(ledger, "g", least=3)
    crowd = Crowd(ledger, "other", "another")
    crowd.until(lambda: len(tries.long) > 5)
    entry = next(entry for entry in ledger.entries() if entry.pod.name == "g-4")
    ledger.drop_pod(entry.pod.uid)
    crowd.until(lambda: crowd.lifted("g-0", "g-1", "g-2"), most=5)


def test_so_is_a_pod_that_asks_for_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"A|B": 10**9, "A|C": A_LITTLE}
    tries = costly_pods(monkeypatch, lambda entry: needs.get(entry.pod.card_name, 0))
    ledger = books()
    slow = a_pod("slow").gpu(1).in_queue("q").gated()
    ledger.put_pod(slow.card("A|B").view())
    crowd = Crowd(ledger, "other", "another")
    crowd.until(lambda: len(tries.long) > 5)
    ledger.put_pod(slow.card("A|C").view())
    crowd.until(lambda: crowd.lifted("slow"), most=5)


def test_a_gang_that_changes_between_all_its_tries_has_none_longer_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor more of them: who changes it has no more of the work than anybody has."""
    tries = costly_gangs(monkeypatch, lambda unit: 10**9)
    crowd = Crowd(books("g"))
    for number in range(600):
        crowd.ledger.put_group(a_group("g").in_queue("q").min_member(2 + number % 2).view())
        crowd.until(lambda: True)
    assert max(tries.steps) <= AT_FIRST + 1
    assert sum(steps > 11 for steps in tries.steps) * AT_FIRST < sum(crowd.waits) / 3


def test_nor_has_one_of_which_a_member_changes_in_each_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end by themselves then, with no decision, and each was followed by another one in the next pass."""

    def changes(unit: Unit) -> int:
        crowd.ledger.put_pod(member("g", SIZE - 1).gated().task(f"t{next(versions)}").view())
        return AT_FIRST - 2

    monkeypatch.setattr(effort, "AS_OFTEN", 10**9)
    crowd, versions = Crowd(books("g"), "other", "another"), count()
    with monkeypatch.context() as patch:
        alone = costly_gangs(patch, lambda unit: 10**9)
        crowd.until(lambda: crowd.passes >= 600)
    share = sum(alone.long) / sum(crowd.waits)
    crowd = Crowd(books("g"), "other", "another")
    tries = costly_gangs(monkeypatch, changes)
    crowd.until(lambda: crowd.passes >= 600)
    assert tries.steps.count(AT_FIRST - 2) > 10
    assert sum(tries.long) / sum(crowd.waits) <= share


def test_nor_does_it_keep_those_behind_it_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that changes while it is decided on: it cannot be decided on before it is left alone."""
    costly_gangs(monkeypatch, lambda unit: 10**9)
    ledger = books("g", fifo=True)
    put_pod(ledger, "behind", "q")
    crowd = Crowd(ledger)
    for number in range(3 * MOST):
        ledger.put_group(a_group("g").in_queue("q").min_member(2 + number % 2).view())
        crowd.until(lambda: True)
        if crowd.lifted("behind"):
            return
    raise AssertionError("not within three times as many passes")


def test_another_gang_is_not_kept_waiting_by_one_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = costly_gangs(
        monkeypatch, lambda unit: MUCH if unit.group is not None and unit.group.name == "h" else 10**9
    )
    alone = Crowd(books("h"))
    alone.until(lambda: alone.lifted(*members("h")))
    tries.steps.clear()
    gone = [f"g{number}" for number in range(10)]
    crowd = Crowd(books(*gone))
    worn_out(crowd, tries)
    for gang in gone:
        for entry in [entry for entry in crowd.ledger.entries() if entry.pod.name.startswith(f"{gang}-")]:
            crowd.ledger.drop_pod(entry.pod.uid)
    put_gang(crowd.ledger, "h")
    before = crowd.passes
    crowd.until(lambda: crowd.lifted(*members("h")))
    assert crowd.passes - before < 1.5 * alone.passes
