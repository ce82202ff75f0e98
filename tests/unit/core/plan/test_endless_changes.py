"""A pass ends, whatever changes meanwhile: what waits for its end would wait for ever, see LiftWriter.give_back."""

from collections.abc import Container
from typing import Any

import pytest

from core.objects import Pod
from core.plan import effort, rotation
from core.plan.course import Courses
from core.plan.decision import Decision, Lift
from core.plan.effort import Costly, Cuts, Ration
from core.plan.lift import Planner
from core.plan.together import Gangs
from core.plan.turn import Turn
from core.plan.units import Unit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps
from tests.builders import a_group, a_node, a_pod, a_queue

GANGS = 200
SIZE = 2
PAUSES_IN_A_STEP = 8


def member(queue: str, gang: int, number: int = 0, *, version: int = 0) -> Pod:
    built = a_pod(f"{queue}-{gang}-{number}").gpu(1).card("A").in_group(f"{queue}-{gang}").gated()
    return built.task(f"t{version % 2}").put("metadata", "resourceVersion", value=str(version)).view()


def books(quota: int = 1, gangs: int = GANGS, size: int = SIZE, **queues: int) -> Ledger:
    """Queues of so many gangs each, of which the quota lets one in or none."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for queue in queues or {"one": gangs, "two": gangs}:
        ledger.put_queue(a_queue(queue).cards({"A": quota}).view())
        for gang in range(queues.get(queue, gangs)):
            put_gang(ledger, queue, gang, size)
    return ledger


def put_gang(ledger: Ledger, queue: str, gang: int, size: int = SIZE) -> None:
    name = f"{queue}-{gang}"
    ledger.put_group(a_group(name).in_queue(queue).min_member(size).uid(name).view())
    for number in range(size):
        ledger.put_pod(member(queue, gang, number))


def pauses_of(ledger: Ledger, every: int = 0, most: int = 1_000_000) -> int:
    """How many pauses one pass over all queues has, at some of which one pod in each of two queues changes."""
    pauses = 0
    for _ in Planner(ledger).run(ledger.wakeups.take_queues()):
        pauses += 1
        if every and pauses % every == 0:
            for queue in ("one", "two"):
                ledger.put_pod(member(queue, 0, version=pauses // every))
        assert pauses < most, f"no end after {pauses} pauses"
    return pauses


@pytest.mark.parametrize("every", [1, 50, 200, 400, 800])
def test_changes_in_two_large_queues_keep_no_pass_from_its_end(every: int) -> None:
    """Each was woken while the other one had its turn, and the pass went on for both."""
    quiet = pauses_of(books())
    pauses_of(books(), every, most=6 * quiet)


def test_nor_does_somebody_in_each_who_always_needs_more_than_a_pass_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their queues come after all others, in each round, and were left for one another then."""

    def take_costly(_cuts: Cuts, but_of: Container[str], *, others_wait: bool) -> Costly | None:
        assert others_wait in (False, True)
        return next((Costly("somebody", queue, 8) for queue in ("one", "two") if queue not in but_of), None)

    monkeypatch.setattr(effort, "OF_A_PASS", 8)
    quiet = pauses_of(books())
    monkeypatch.setattr(Cuts, "take_costly", take_costly)
    pauses_of(books(), 50, most=6 * quiet)


def test_a_large_queue_that_is_woken_meanwhile_is_begun_once_and_goes_on_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To begin it costs as much as it is long."""
    begun: list[str] = []
    turn = Courses.turn

    def counted(self: Courses, name: str, ration: Ration | None) -> Turn:
        begun.append(name)
        return turn(self, name, ration)

    monkeypatch.setattr(Courses, "turn", counted)
    ledger = books(one=8 * GANGS, two=GANGS)
    ledger.wakeups.take_queues()
    told: list[str] = []
    for number, decision in enumerate(Planner(ledger).run(["one"])):
        if number == 50:
            ledger.wakeups.look_at("two")
        told += [decision.queue] if decision is not None else []
    assert begun == ["one", "two"]
    assert told.count("two") == SIZE * GANGS
    assert told.count("one") == SIZE * 8 * GANGS
    assert told.index("two") < told.index("one") + 500
    assert told[-1] == "one", "it has not waited for the end"
    assert not ledger.wakeups.pending


def test_who_is_not_through_when_the_pass_ends_is_among_the_first_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was found out until then is not found out again."""
    ledger = books(one=GANGS, two=8 * GANGS)
    ledger.wakeups.take_queues()
    planner = Planner(ledger)
    told: set[str] = set()
    for number, decision in enumerate(planner.run(["one"])):
        if number == 20:
            ledger.wakeups.look_at("two")
        told |= {decision.pod.uid} if decision is not None and decision.queue == "two" else set()
    assert 0 < len(told) < 8 * SIZE * GANGS
    queues = ledger.wakeups.take_queues()
    assert queues == ["two"]
    looked_at: list[Unit] = []
    decide = Gangs.decide

    def counted(self: Gangs, unit: Unit, *known: Any) -> Steps[list[Decision] | None]:
        looked_at.append(unit)
        return decide(self, unit, *known)

    monkeypatch.setattr(Gangs, "decide", counted)
    for _ in planner.run(queues):
        pass
    assert len(told) + SIZE * len(looked_at) == 8 * SIZE * GANGS
    assert not ledger.wakeups.pending


def test_a_small_queue_comes_in_between_however_many_large_ones_go_on() -> None:
    large = {f"large-{number}": GANGS for number in range(5)}
    ledger = books(one=4 * GANGS, small=0, **large)
    ledger.wakeups.take_queues()
    since: int | None = None
    for number, decision in enumerate(Planner(ledger).run(["one"])):
        if number == 20:
            ledger.wakeups.look_at(*large)
        if number == 800:
            ledger.put_pod(a_pod("small").gpu(1).card("A").in_queue("small").gated().view())
            since = 0
        if since is not None:
            since += 1
            if isinstance(decision, Lift):
                break
    assert since is not None
    assert since < 2 * PAUSES_IN_A_STEP * (2 * rotation.BEFORE_OTHERS + len(large))
