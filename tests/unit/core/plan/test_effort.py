"""How much work a pass puts into its gangs, counted in steps and bookings: none twice, none for what is certain anyway."""

import pytest

from core import reasons
from core.plan import effort
from core.plan.decision import Decision, Hold, Lift
from core.plan.effort import Cuts, Effort, Ration
from core.plan.lift import Planner
from core.steps import Steps
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.core.plan.counting import Counted

SIZE = 20
BOOKED_IN_A_STEP = 8


def books(*gangs: str, cards: tuple[int, int], cpu: int = 1000) -> Counted:
    """One queue with so many A and B, and nodes with more of them."""
    ledger = Counted()
    for card in "AB":
        ledger.put_node(a_node(card.lower()).card(card, 800).allocatable("cpu", 2000).view())
    ledger.put_queue(a_queue("q").cards(dict(zip("AB", cards, strict=True))).capability(cpu=cpu).view())
    for gang in gangs:
        ledger.put_group(a_group(gang).in_queue("q").min_member(SIZE).view())
    return ledger


def member(gang: str, number: int, *, count: int = 1, milli_cpu: int = 1000) -> PodBuilder:
    pod = a_pod(f"{gang}-{number:02}").gpu(count).card("A|B").request("cpu", f"{milli_cpu}m")
    return pod.in_group(gang).gated()


def puzzles(*gangs: str) -> Counted:
    """Gangs that nobody can work out: odd numbers of cards, for members that each want another even number of them.

    All together they ask for just as many as there are, and no two gangs for the same.
    """
    ledger = books(*gangs, cards=(211, 209))
    for place, gang in enumerate(gangs, 1):
        for number in range(SIZE):
            more = {place: -2, SIZE - place: 2}.get(number, 0)
            ledger.put_pod(member(gang, number, count=2 * number + 2 + more).view())
    ledger.wakeups.take_queues()
    return ledger


def passed(ledger: Counted, planner: Planner) -> list[Decision]:
    return [decision for decision in planner.run(["q"]) if decision is not None]


def passes(ledger: Counted, planner: Planner) -> list[Decision]:
    """All that is told until nobody is left to be looked at."""
    ledger.wakeups.look_at("q")
    found: list[Decision] = []
    while queues := ledger.wakeups.take_queues():
        found += [decision for decision in planner.run(queues) if decision is not None]
    return found


def reasons_of(decisions: list[Decision]) -> set[str]:
    return {decision.why.code for decision in decisions if isinstance(decision, Hold)}


# -- what is not needed --------------------------------------------------------------------------------------------


def test_members_that_differ_in_what_is_plentiful_are_not_tried_in_every_way() -> None:
    """Each with another amount of CPU, of which there is enough, and one card too few on the nodes."""
    ledger = books("g", cards=(10, 10))
    ledger.put_node(a_node("b").card("B", 9).view())
    for number in range(SIZE):
        ledger.put_pod(member("g", number, milli_cpu=1000 + 37 * number).view())
    decisions = passes(ledger, Planner(ledger))
    assert f"{SIZE - 1} fit" in next(hold.why.message for hold in decisions if isinstance(hold, Hold))
    assert ledger.writes < 25 * SIZE


@pytest.mark.parametrize(
    ("cards", "cpu", "reason"),
    [((10, 9), 28, reasons.INSUFFICIENT_SCALAR_QUOTA), ((10, 10), 27, reasons.INSUFFICIENT_CPU_QUOTA)],
)
def test_what_can_suffice_for_nobody_is_not_searched_for(
    cards: tuple[int, int], cpu: int, reason: str
) -> None:
    """Of cards, or of CPU, there is less than the members ask for together; how far they get is told all the same."""
    ledger = books("g", cards=cards, cpu=cpu)
    for number in range(SIZE):
        ledger.put_pod(member("g", number, milli_cpu=1000 + 37 * number).view())
    decisions = passes(ledger, Planner(ledger))
    assert reasons_of(decisions) == {reason}
    assert f"{SIZE - 1} fit" in next(hold.why.message for hold in decisions if isinstance(hold, Hold))
    assert ledger.writes <= 4 * SIZE


def test_cpu_that_somebody_takes_meanwhile_has_the_members_told_apart() -> None:
    """It was enough for all when the search began. Before it ends it is enough for the small ones only."""
    ledger = books("g", cards=(60, 0), cpu=125)
    ledger.put_group(a_group("g").in_queue("q").min_member(30).view())
    for number in range(60):
        ledger.put_pod(member("g", number, milli_cpu=3000 if number < 30 else 1000).view())
    other = a_pod("other").gpu(0).card("A").request("cpu", 90).in_queue("q").bound_to("a").view()
    planner, lifted = Planner(ledger), 0
    while queues := ledger.wakeups.take_queues():
        for decision in planner.run(queues):
            lifted += isinstance(decision, Lift)
            if ledger.writes and ledger.entry(other.uid) is None:
                ledger.put_pod(other)
                ledger.wakeups.take_queues()
    assert lifted >= 30


# -- what is given up ------------------------------------------------------------------------------------------------


def test_a_search_has_an_end_and_what_was_given_up_is_remembered_until_something_changes() -> None:
    ledger = puzzles("g")
    planner = Planner(ledger)
    assert reasons_of(passes(ledger, planner)) == {reasons.GANG_SEARCH_GIVEN_UP}
    given_up = ledger.writes
    assert 200 < given_up < 2500
    ledger.put_pod(a_pod("new").gpu(1000).card("A").in_queue("q").gated().view())
    assert reasons_of(passes(ledger, planner)) >= {reasons.GANG_SEARCH_GIVEN_UP}
    assert ledger.writes == given_up, "a new pod in the queue is no help"
    ledger.put_node(a_node("c").card("C", 8).view())
    ledger.put_queue(a_queue("elsewhere").cards({"A": 9}).view())
    passes(ledger, planner)
    assert ledger.writes == given_up
    ledger.put_queue(a_queue("q").cards({"A": 211, "B": 211}).capability(cpu=1000).view())
    passes(ledger, planner)
    assert ledger.writes > given_up, "more quota may be a help"


def test_of_gangs_that_ask_for_the_same_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of thirty was tried and cut, with more each time, until the first of them had come to its end."""
    monkeypatch.setattr(effort, "OF_A_PASS", 30)
    gangs = [f"g{number}" for number in range(10)]
    ledger = books(*gangs, cards=(211, 209))
    for gang in gangs:
        for number in range(SIZE):
            ledger.put_pod(member(gang, number, count=2 * number + 2).view())
    ledger.wakeups.take_queues()
    planner = Planner(ledger)
    assert passed(ledger, planner) == []
    assert set(ledger.of_group) == {"g0"}
    decisions = passes(ledger, planner)
    assert len({decision.pod.uid for decision in decisions}) == 10 * SIZE
    assert reasons_of(decisions) == {reasons.GANG_SEARCH_GIVEN_UP}
    assert set(ledger.of_group) == {"g0"}


# -- how it is shared ------------------------------------------------------------------------------------------------


def test_the_effort_of_a_pass_is_shared_equally_by_the_gangs_of_a_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And who comes last in line is not kept waiting by them."""
    monkeypatch.setattr(effort, "OF_A_PASS", 100)
    gangs = [f"g{number}" for number in range(9)]
    ledger = puzzles(*gangs)
    ledger.put_pod(
        a_pod("last").gpu(1).card("A").in_queue("q").gated().created("2030-01-01T00:00:00Z").view()
    )
    decisions = passed(ledger, Planner(ledger))
    assert [decision.pod.name for decision in decisions] == ["last"]
    fair = 100 // 10
    for gang in gangs:
        assert 0 < ledger.of_group[gang] <= 2 * (fair + 2) * BOOKED_IN_A_STEP


def test_who_was_cut_has_four_times_as_much_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "OF_A_PASS", 200)
    monkeypatch.setattr(effort, "OF_A_UNIT", 1)
    cuts, ended = Cuts(), False
    taken: list[int] = []

    def costly() -> Steps[str]:
        nonlocal ended
        taken.append(0)
        for _ in range(60):
            taken[-1] += 1
            yield
        ended = True
        return "decided"

    while not ended:
        ration = Ration(cuts.new_pass(), 10)
        ration.units = 1
        for _ in cuts.limited("gang", "q", costly(), ration):
            pass
    assert taken == [11, 41, 60]


def test_whoever_is_put_off_pauses_first_and_has_given_back_what_it_held() -> None:
    """A thousand gangs for which no effort was left were begun and put off in one piece of most of a second."""
    ended: list[str] = []

    def costly() -> Steps[str]:
        try:
            while True:
                yield
        finally:
            ended.append("given back")

    ration = Ration(Effort(0), 0)
    limited = Cuts().limited("gang", "q", costly(), ration)
    next(limited)
    assert ended == ["given back"]
    with pytest.raises(StopIteration) as end:
        next(limited)
    assert end.value.value == (None, 1)


def test_who_is_costly_is_cut_short_for_nobody_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass finds out that it is costly, the second decides, however long that takes."""
    monkeypatch.setattr(effort, "OF_A_PASS", 30)
    ledger = puzzles("g")
    planner = Planner(ledger)
    assert passed(ledger, planner) == []
    assert reasons_of(passed(ledger, planner)) == {reasons.GANG_SEARCH_GIVEN_UP}
