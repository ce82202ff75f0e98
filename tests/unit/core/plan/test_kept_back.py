"""What an unfinished gang lacks is kept back for it in every queue above its own, not in its own alone."""

from collections.abc import Callable, Iterable

import pytest

from core.plan import effort, rotation, units
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_pod
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.unit.core.plan.levels import THROUGH, books, running, team, waiting

MEMBERS = 300
"""So many cannot be decided on in one step."""


def queue(name: str, parent: str = "org") -> QueueBuilder:
    return team(name, parent).cards({"A": 1000})


def member(number: int) -> PodBuilder:
    return a_pod(f"g-{number:03}").gpu(1).card("A").in_group("g").in_queue("red").gated()


def lifted(pod: PodBuilder, together: int) -> PodBuilder:
    return pod.put("spec", "schedulingGates", value=[]).assigned({"A": 1}).charged("red").together(together)


def halved(members: int, *pods: PodBuilder, org: int, settings: Settings = THROUGH) -> Ledger:
    """A gang of which one member is in, in a queue beside another one."""
    above = team("org", "").cards({"A": org})
    ledger = books(above, queue("red"), queue("blue"), queue("pink", "red"), settings=settings)
    ledger.put_group(a_group("g").in_queue("red").min_member(members).view())
    ledger.put_pod(lifted(member(0), members).view())
    for number in range(1, members):
        ledger.put_pod(member(number).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def names(
    ledger: Ledger, queues: Iterable[str] | None = None, then: Callable[[], object] | None = None
) -> list[str]:
    """Who is lifted in passes until nothing is left to do; `then` something happens, after three lifts."""
    planner, found = Planner(ledger), list[str]()
    first = queues
    while pending := [*(first or ledger.wakeups.take_queues())]:
        first = None
        for decision in planner.run(pending):
            if isinstance(decision, Lift):
                found.append(decision.pod.name)
                if then is not None and len(found) == 3:
                    then()
    return found


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that has hardly any effort for anybody: whoever takes more than a step is put off."""
    monkeypatch.setattr(effort, "OF_A_PASS", 1)
    monkeypatch.setattr(effort, "OF_A_UNIT", 1)
    monkeypatch.setattr(rotation, "BEFORE_OTHERS", 0)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("other", ["blue", "pink", "org"])
def test_a_gang_that_is_put_off_gets_what_it_lacks_whoever_else_is_below(other: str) -> None:
    """A queue beside its own, one below, and the one above itself."""
    ledger = halved(MEMBERS, waiting("single", other), org=MEMBERS)
    assert names(ledger) == [f"g-{number:03}" for number in range(1, MEMBERS)]


@pytest.mark.usefixtures("little")
def test_what_it_leaves_goes_to_the_others() -> None:
    ledger = halved(MEMBERS, waiting("single", "blue"), waiting("more", "blue", 9), org=MEMBERS + 1)
    found = names(ledger)
    assert found[-1] == "single"
    assert len(found) == MEMBERS


@pytest.mark.usefixtures("little")
def test_one_that_cannot_have_all_that_it_lacks_holds_up_nobody() -> None:
    """Nothing is reserved: it waits until so much is left at once."""
    ledger = halved(MEMBERS, running("r", "blue", 2), waiting("single", "blue"), org=MEMBERS + 1)
    assert names(ledger) == ["single"]


@pytest.mark.usefixtures("little")
def test_where_nothing_is_shared_nobody_waits_for_anybody() -> None:
    flat = halved(MEMBERS, waiting("single", "blue"), org=MEMBERS, settings=Settings())
    assert names(flat, ["red", "blue"])[0] == "single"
    unlimited = halved(MEMBERS, waiting("single", "blue"), org=MEMBERS)
    unlimited.put_queue(team("org", "").cards({"B": 1}).view())
    assert names(unlimited, ["red", "blue"])[0] == "single"


def test_a_queue_that_is_left_before_its_gang_is_decided_on_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, little: None
) -> None:
    monkeypatch.setattr(units, "_IN_ONE_STEP", 5)
    alone = [waiting(f"alone-{number}", "red", 900) for number in range(100)]
    ledger = halved(2, waiting("single", "blue"), *alone, org=2)
    assert names(ledger) == ["g-001"]


def test_a_gang_that_loses_a_member_while_others_have_their_turn_gets_the_next_that_comes_free() -> None:
    crowd = [waiting(f"p{number}", "blue") for number in range(50)]
    ledger = halved(2, *crowd, org=5)
    ledger.put_pod(lifted(member(1), 2).view())
    ledger.wakeups.take_queues()

    def lost() -> None:
        ledger.drop_pod("uid-ml-g-001")
        ledger.put_pod(member(2).view())

    assert names(ledger, ["blue"], lost) == ["p0", "p1", "p10", "g-002"]
