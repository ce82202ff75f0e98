"""A queue's line: what goes through all of it is done in pieces, and pods may come and go in between."""

from collections.abc import Callable, Hashable
from itertools import pairwise

import pytest

from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues import entry as entry_module
from core.queues.demand import Demand
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.line import Line
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue

IN_ONE_STEP = 250


def entry(number: int, *, cpu: int = 0) -> Entry:
    ledger = Ledger(Settings())
    ledger.put_pod(a_pod(f"p{number:05}").gpu(1).card("A").request("cpu", cpu).in_queue("q").gated().view())
    (found,) = ledger.entries()
    return found


MANY = [entry(number) for number in range(1000)]


def line_of(*entries: Entry) -> Line:
    line = Line()
    for each in entries:
        line.put(each)
    return line


def told(line: Line, meanwhile: Callable[[int], object] = lambda _: None) -> list[list[str]]:
    """The names of those who are told, with a list for each piece."""
    pieces: list[list[str]] = [[]]
    for each in line.untold():
        if each is None:
            meanwhile(len(pieces))
            pieces.append([])
        else:
            line.told(each.pod.uid)
            pieces[-1].append(each.pod.name)
    return pieces


def test_many_new_pods_are_told_in_their_order_and_in_pieces() -> None:
    """A hundred thousand of them were sorted in one piece."""
    pieces = told(line_of(*reversed(MANY)))
    assert [name for piece in pieces for name in piece] == [each.pod.name for each in MANY]
    assert max(map(len, pieces)) == IN_ONE_STEP


def test_a_few_new_pods_are_found_without_going_through_the_line() -> None:
    line = line_of(*MANY)
    told(line)
    line.put(entry(5000))
    line.put(entry(3000))
    assert told(line) == [["p03000", "p05000"]]
    assert told(line) == [[]]


def test_who_leaves_or_comes_in_between_is_told_as_far_as_the_place_is_still_to_come() -> None:
    line = line_of(*MANY)
    late, early = entry(20_000), entry(0, cpu=1)

    def meanwhile(piece: int) -> None:
        if piece == 1:
            line.drop(MANY[10])
            line.drop(MANY[990])
            line.drop(MANY[0])
            line.put(early)
            line.put(late)

    names = [name for piece in told(line, meanwhile) for name in piece]
    assert set(names) == {each.pod.name for each in (*MANY[:990], *MANY[991:], late)}
    assert len(names) == len(set(names))
    assert told(line) == [["p00000"]], "it came back, and is told the next time"


def test_who_is_not_told_stays_new() -> None:
    line = line_of(*MANY[:3])
    assert [each for each in line.untold() if each is not None] == MANY[:3]
    assert [each for each in line.untold() if each is not None] == MANY[:3]


def test_the_heads_of_many_wishes_are_found_in_pieces() -> None:
    wishes = [entry(number, cpu=1 + number) for number in range(600)]
    line = line_of(*wishes)
    assert sum(1 for _ in line.heads()) == 2
    heads = finish(line.heads())
    assert len(heads) == 600
    assert min(heads)[0][-2] == "ml/p00000"
    assert {count for *_, count in heads} == {1}
    assert all(heads[(place - 1) // 2] <= heads[place] for place in range(1, 600))
    assert all(one != other for one, other in pairwise(heads))


def test_what_a_pod_wishes_is_worked_out_when_it_is_booked_and_not_again_by_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 3}).view())
    for number in range(5):
        ledger.put_pod(a_pod(f"p{number}").gpu(1).card("A").in_queue("q").gated().view())
    worked_out: list[str] = []
    found_out = entry_module._wish

    def noted(pod: Pod, demand: Demand, *, allowed: bool) -> Hashable:
        worked_out.append(pod.name)
        return found_out(pod, demand, allowed=allowed)

    monkeypatch.setattr(entry_module, "_wish", noted)
    lifts = [decision for decision in Planner(ledger).run(["q"]) if isinstance(decision, Lift)]
    assert len(lifts) == 3
    assert not worked_out
    ledger.forget_all()
    assert sorted(worked_out) == ["p0", "p1", "p2"]
