"""Others are not kept waiting by pods and gangs that need very much work, and those are decided on all the same."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from core import reasons
from core.plan import effort
from core.plan.decision import Hold, Lift
from core.plan.effort import Cuts, Ration
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.steps import Steps, finish
from tests.builders import a_pod, a_queue
from tests.unit.core.plan.costly import (
    AFTER_IT,
    AT_FIRST,
    MUCH,
    SIZE,
    Crowd,
    Tries,
    books,
    costly_gangs,
    costly_pods,
    members,
    much,
    put_gang,
    put_pod,
)

pytestmark = pytest.mark.usefixtures("little_effort")


# -- everybody is decided on, and others hardly notice -----------------------------------------------------------------


@pytest.mark.parametrize("gangs", [["g"], ["g", "h"], [f"g{number}" for number in range(6)]])
def test_gangs_are_decided_on_though_others_wait_all_the_time(
    gangs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were told that this is done when nobody waits, and of several the counter of one was that of all."""
    tries = costly_gangs(monkeypatch, much)
    crowd = Crowd(books(*gangs))
    crowd.until(lambda: crowd.lifted(*members(*gangs)))
    assert not [each for each in crowd.told if isinstance(each, Hold)]
    assert sum(tries.long) < sum(crowd.waits) / 3


def test_so_are_those_in_several_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    costly_gangs(monkeypatch, much)
    ledger = books("g")
    for name in ("r", "s"):
        ledger.put_queue(a_queue(name).cards({"A": 10_000}).view())
        put_gang(ledger, f"g{name}", name)
    crowd = Crowd(ledger)
    crowd.until(lambda: crowd.lifted(*members("g", "gr", "gs")))


def test_so_are_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = costly_pods(monkeypatch, lambda entry: MUCH * (entry.pod.name == "slow"))
    ledger = books()
    put_pod(ledger, "slow", "q")
    crowd = Crowd(ledger)
    crowd.until(lambda: crowd.lifted("slow"))
    assert not [each for each in crowd.told if isinstance(each, Hold)]
    assert sum(tries.long) < sum(crowd.waits) / 3


def test_whoever_gets_on_from_try_to_try_has_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found out about nodes stays known: each try begins where the last one has ended."""
    monkeypatch.setattr(effort, "AS_OFTEN", 30)
    tries = costly_gangs(monkeypatch, much, kept=True)
    crowd = Crowd(books("g"))
    crowd.until(lambda: crowd.lifted(*members("g")))
    assert max(crowd.waits) <= AT_FIRST + AFTER_IT
    assert max(tries.steps) <= AT_FIRST + 1


def test_a_try_grows_again_when_it_has_been_in_vain_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each of them comes long after the one before."""
    tries = costly_gangs(monkeypatch, lambda unit: 900)
    crowd = Crowd(books("g"))
    crowd.until(lambda: crowd.lifted(*members("g")), most=3000)
    as_large = [steps for steps in tries.long if AT_FIRST < steps <= AT_FIRST + 1]
    assert tries.long[-3:] == [4 * AT_FIRST + 1, 16 * AT_FIRST + 1, 900]
    assert len(as_large) == 1 + effort.AS_OFTEN
    long = [wait for wait in crowd.waits if wait > AT_FIRST + AFTER_IT]
    assert len(long) == 3
    place = [crowd.waits.index(wait) for wait in long]
    for (first, second), steps in zip(pairwise(place), long[1:], strict=True):
        assert sum(crowd.waits[first + 1 : second]) > 3 * min(steps, 4 * tries.long[-2])


def test_most_newcomers_wait_no_longer_than_where_nobody_is_costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even those whose queue came last in the round: that one of them waits there was not seen."""
    quiet = Crowd(books())
    quiet.until(lambda: len(quiet.waits) >= 100)
    costly_gangs(monkeypatch, lambda unit: 10**9)
    crowd = Crowd(books("g", "h"))
    crowd.until(lambda: len(crowd.waits) >= 2000)
    assert sum(wait > max(quiet.waits) + 5 for wait in crowd.waits) < 100


# -- where nobody else waits ---------------------------------------------------------------------------------------------


def test_where_nobody_waits_it_is_decided_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them, each of which waits for the other one alone."""
    tries = costly_gangs(monkeypatch, lambda unit: 10_000)
    ledger = books("g")
    ledger.put_queue(a_queue("r").cards({"A": 10_000}).view())
    put_gang(ledger, "h", "r")
    planner, passes, lifted = Planner(ledger), 0, set[str]()
    while queues := ledger.wakeups.take_queues():
        passes += 1
        lifted |= {each.pod.name for each in planner.run(queues) if isinstance(each, Lift)}
    assert lifted == {*members("g", "h")}
    assert passes <= 4
    assert tries.steps.count(10_000) == 2


def test_one_that_needs_little_does_not_wait_for_the_end_of_another_that_needs_very_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does who is behind it; both did, for minutes, as long as nobody else came."""
    needs = {"x": 20_000, "g": 300}
    tries = costly_gangs(monkeypatch, lambda unit: needs[unit.group.name] if unit.group is not None else 0)
    ledger = books("x")
    planner, passes, lifted = Planner(ledger), 0, list[str]()
    assert not [*filter(None, planner.run(ledger.wakeups.take_queues()))]
    queue = a_queue("z").cards({"A": 10_000}).put("spec", "dequeueStrategy", value="fifo")
    ledger.put_queue(queue.view())
    put_gang(ledger, "g", "z")
    put_pod(ledger, "behind", "z")
    while queues := ledger.wakeups.take_queues():
        passes += 1
        assert passes < 60
        for each in planner.run(queues):
            if isinstance(each, Lift):
                lifted.append(each.pod.name)
                if each.pod.name == "behind":
                    assert sum(tries.steps) < 20 * needs["g"]
    assert lifted == [*members("g"), "behind", *members("x")]


def wait_of_one(ledger: Ledger, tries: Tries, come: Callable[[], None], name: str) -> int:
    """For how many steps a pod waits that comes in the middle of a long try."""
    planner, since = Planner(ledger), None
    for _ in range(50):
        for decision in planner.run(ledger.wakeups.take_queues()):
            if since is not None and isinstance(decision, Lift) and decision.pod.name == name:
                return since
            since = since + (decision is None) if since is not None else None
            if since is None and tries.steps and tries.steps[-1] == 1000:
                come()
                since = 0
        assert ledger.wakeups.pending
    raise AssertionError("it was not lifted")


@pytest.mark.parametrize("queue", ["q", "other"])
def test_a_pod_that_comes_then_does_not_wait_for_the_end(monkeypatch: pytest.MonkeyPatch, queue: str) -> None:
    """Nor does one of the same queue."""
    ledger, tries = books("g"), costly_gangs(monkeypatch, lambda unit: 10**5)
    assert wait_of_one(ledger, tries, lambda: put_pod(ledger, "late", queue), "late") < 2 * AFTER_IT


def test_nor_do_those_who_were_put_off_in_another_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need a little more than their part, and have it in the next pass."""
    monkeypatch.setattr(effort, "OF_A_PASS", 100)
    tries = costly_gangs(monkeypatch, lambda unit: 10**5)
    parts = costly_pods(monkeypatch, lambda entry: 20 * (entry.queue == "another"))
    ledger = books("g")
    crowd = Crowd(ledger)
    crowd.until(lambda: len(tries.long) > 3)
    for number in range(1, 10):
        ledger.put_pod(a_pod(f"p{number}").gpu(number).card("A").in_queue("another").gated().view())
    ledger.wakeups.take("other")
    steps, queues = 0, ["another", "q"]
    while True:
        for decision in crowd.planner.run(queues):
            steps += decision is None
            assert steps < 1000
            if isinstance(decision, Lift):
                assert parts.steps[0] == 9
                return
        queues = ledger.wakeups.take_queues()


# -- whose turn it is ------------------------------------------------------------------------------------------------------


def endless() -> Steps[str]:
    while True:
        yield


def noted(cuts: Cuts, *keys: str) -> None:
    """They have been cut once, and need more than a pass has."""
    for key in keys:
        finish(cuts.limited(key, f"q-{key}", endless(), Ration(cuts.new_pass(), 10)))
    for key in keys:
        finish(cuts.limited(key, f"q-{key}", endless(), Ration(cuts.new_pass(), 10)))


def test_of_several_the_one_that_has_waited_longest_is_the_first() -> None:
    cuts, turns = Cuts(), list[object]()
    noted(cuts, "a", "b", "c")
    for _ in range(6):
        cuts.steps += 10_000
        taken = cuts.take_costly((), others_wait=True)
        assert taken is not None
        turns.append(taken.key)
        finish(
            cuts.limited(
                taken.key, taken.queue, endless(), Ration(cuts.new_pass(), 0, taken.key, most=taken.most)
            )
        )
        finish(cuts.limited(taken.key, taken.queue, endless(), Ration(cuts.new_pass(), 10)))
    assert turns == [*"abcabc"]


def test_it_is_not_even_begun_while_others_wait_and_it_is_too_early() -> None:
    """They would wait in vain: what is found out until they come is lost."""
    cuts = Cuts()
    noted(cuts, "a")
    assert cuts.take_costly((), others_wait=True) is None
    taken = cuts.take_costly((), others_wait=False)
    assert taken is not None
    assert taken.most == 0


@pytest.mark.parametrize(
    ("others", "comes_after", "had", "counts"),
    [
        (["b"], 10**9, 11, True),
        (["b"], 3, 3, False),
        ([], 50, 50, False),
    ],
)
def test_where_only_others_that_come_last_wait_each_has_his_part(
    others: list[str], comes_after: int, had: int, *, counts: bool
) -> None:
    """Though it is not due: that is for the sake of whoever is not costly, for whom it ends at once, as one alone does."""
    cuts = Cuts()
    noted(cuts, "a", *others)
    taken = cuts.take_costly((), others_wait=False)
    assert taken is not None
    assert (taken.key, taken.most) == ("a", 0)
    steps = 0

    def counted() -> Steps[str]:
        nonlocal steps
        while True:
            steps += 1
            yield

    ration = Ration(cuts.new_pass(), 0, "a", lambda: steps >= comes_after, taken.most)
    finish(cuts.limited("a", "q-a", counted(), ration))
    assert steps == had
    assert cuts.is_costly("a") == counts
    assert (cuts._cuts["a"].times == 2) == counts


def test_who_is_begun_with_no_part_in_the_turn_of_another_has_not_been_tried_in_vain() -> None:
    """It needs no more for that, and would come last itself one day."""
    cuts = Cuts()
    finish(cuts.limited("b", "q", endless(), Ration(cuts.new_pass(), 1)))
    noted(cuts, "a")
    for _ in range(3):
        value, _ = finish(cuts.limited("b", "q", endless(), Ration(cuts.new_pass(), 0, "a", most=10)))
        assert value is None
    assert cuts._cuts["b"].times == 1
    assert not cuts.is_costly("b")


@pytest.mark.parametrize(("short", "begun"), [(9, False), (10, True)])
def test_a_short_try_is_made_in_each_pass_though_others_wait(
    monkeypatch: pytest.MonkeyPatch, short: int, *, begun: bool
) -> None:
    """Else thirty gangs that need a second each would be decided on after minutes."""
    monkeypatch.setattr(effort, "SHORT", short)
    cuts = Cuts()
    noted(cuts, "a")
    taken = cuts.take_costly((), others_wait=True)
    assert (taken is not None and taken.most == 10) == begun


def test_who_is_not_heard_of_any_more_is_dropped() -> None:
    cuts = Cuts()
    noted(cuts, "a", "b")
    cuts.drop_unused()
    finish(cuts.limited("b", "q-b", endless(), Ration(cuts.new_pass(), 10)))
    cuts.drop_unused()
    taken = cuts.take_costly((), others_wait=False)
    assert taken is not None
    assert taken.key == "b"
    assert cuts.take_costly((), others_wait=False) is None


def test_what_was_given_up_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not that it took too long for others."""
    costly_gangs(monkeypatch, much)
    ledger = books("g")
    ledger.put_queue(a_queue("q").cards({"A": SIZE - 1}).view())
    crowd = Crowd(ledger)
    crowd.until(lambda: crowd.told)
    assert {each.why.code for each in crowd.told if isinstance(each, Hold)} == {
        reasons.INSUFFICIENT_SCALAR_QUOTA
    }
