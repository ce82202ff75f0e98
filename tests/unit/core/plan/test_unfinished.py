"""Gangs that were cut short: who is told, and whose members are given back, and when."""

import pytest

from core import reasons
from core.objects import Pod
from core.plan.lift import Planner
from core.plan.unfinished import given_back_notice, unfinished_gangs, unfinished_notice
from core.queues.ledger import Ledger
from core.steps import finish
from tests.builders import a_queue
from tests.fakes.counted import longest_step
from tests.unit.core.plan.halves import GIVES_BACK, SECOND, TOLD, World, lifted, lifted_alone, member


def test_a_gang_that_was_cut_short_gives_back_what_it_holds_when_its_time_is_over() -> None:
    world = World()
    world.half("g")
    assert world.given_back(0) == []
    assert world.given_back(59) == []
    assert world.given_back(60) == ["g-0", "g-1", "g-2"]
    assert world.given_back(61) == [], "each is named once"


def test_without_the_setting_nothing_is_given_back_and_it_is_told_once() -> None:
    world = World(TOLD)
    world.half("g")
    assert world.told(0) == []
    assert world.told(599) == []
    assert world.told(600) == ["g"]
    assert world.told(601) == []
    assert world.given_back(10**6) == []


def test_with_the_setting_it_is_told_no_later_than_it_gives_back() -> None:
    world = World()
    world.half("g")
    assert world.told(0) == []
    assert world.told(60) == ["g"]


def test_nobody_is_condemned_any_more_once_the_gang_is_finished_or_the_pod_has_a_node() -> None:
    world = World()
    world.half("g")
    world.given_back(0)
    world.given_back(60)
    assert world.gangs.condemned("uid-ml-g-0") == lifted("g", 0).view()
    world.put(lifted("g", 0).bound_to("n"))
    assert world.gangs.condemned("uid-ml-g-0") is None
    assert world.gangs.condemned("uid-ml-g-1") is not None
    world.put(lifted("g", 3))
    assert world.gangs.condemned("uid-ml-g-1") is None


def test_only_members_that_somebody_makes_anew_and_that_have_waited_long_enough_are_given_back() -> None:
    world = World()
    world.half("g")
    world.put(lifted("g", 0).put("metadata", "ownerReferences", value=[]))
    world.since["uid-ml-g-1"] = 30 * SECOND
    world.given_back(0)
    assert world.given_back(60) == ["g-2"]
    assert world.given_back(90) == ["g-1"]


def test_who_was_finished_in_between_begins_anew() -> None:
    world = World()
    world.half("g")
    world.given_back(0)
    world.put(lifted("g", 3))
    world.given_back(30)
    world.put(member("g", 3))
    assert world.given_back(60) == []
    assert world.given_back(119) == []
    assert world.given_back(120) == ["g-0", "g-1", "g-2"]


def test_a_lift_that_is_tried_and_comes_to_nothing_finishes_no_gang() -> None:
    """The API server refuses it again and again."""
    world = World()
    world.half("g")
    world.given_back(0)
    planner = Planner(world.ledger)
    for second in (10, 20, 30, 40, 50):
        (decision,) = planner.decide("q")
        world.given_back(second)
        world.ledger.forget(decision.pod.uid)
    assert world.given_back(60) == ["g-0", "g-1", "g-2"]


def test_while_the_lift_that_finishes_the_gang_is_under_way_nobody_is_deleted() -> None:
    """Should it come to nothing, they are named again."""
    world = World()
    world.half("g")
    world.given_back(0)
    assert world.given_back(60) == ["g-0", "g-1", "g-2"]
    (decision,) = Planner(world.ledger).decide("q")
    assert world.gangs.condemned("uid-ml-g-0") is None
    world.ledger.forget(decision.pod.uid)
    assert world.given_back(61) == ["g-0"]
    assert world.gangs.condemned("uid-ml-g-0") is not None


def test_a_new_leader_begins_anew() -> None:
    world = World()
    world.half("g")
    world.told(0)
    world.gangs.restart()
    assert world.told(60) == []
    assert world.told(120) == ["g"]


@pytest.mark.parametrize("minimum", [3, 1])
def test_a_minimum_that_was_lowered_leaves_nothing_to_finish(minimum: int) -> None:
    world = World()
    world.half("g")
    world.group("g", minimum=minimum)
    world.given_back(0)
    assert world.given_back(60) == []


def test_a_gang_without_waiting_members_counts_as_long_as_members_have_no_node() -> None:
    world = World()
    world.group("g")
    for number in range(3):
        world.put(lifted("g", number))
    assert [(gang.counted, gang.lacking) for gang in world.unfinished()] == [(3, 1)]
    for number in range(3):
        world.put(lifted("g", number).bound_to("n"))
    assert world.unfinished() == []


def test_the_words_say_what_is_held_what_is_lacking_and_what_comes_next() -> None:
    world = World()
    world.half("g")
    (gang,) = world.unfinished()
    said = (
        "Queue <q>: of 4 members that were let in together 3 are in, for more than 600 s; 3 hold quota and have no node. "
        "The gang comes before all others, and lacks 1 (the events of those that wait say why); "
    )
    assert unfinished_notice(gang, TOLD) == (
        reasons.GANG_UNFINISHED,
        f"{said}set reservation.unfinishedAfter, or delete pods of it or of another such gang by hand",
    )
    assert unfinished_notice(gang, GIVES_BACK)[1].endswith("is given back after 60 s, younger gangs first")
    alone = World()
    alone.group("g")
    alone.put(lifted_alone("g", 0))
    (gang,) = alone.unfinished()
    assert unfinished_notice(gang, TOLD)[1].startswith(
        "Queue <q>: of 4 members that have to start together 1 is in, for more than 600 s; 1 holds quota and has no node. "
        "They were let in one by one, or before the minimum was raised, and lack 3 (the events of those that wait say why); "
    )
    code, text = given_back_notice(lifted("g", 0).view(), "q", GIVES_BACK)
    assert code == reasons.GANG_GIVEN_BACK
    assert text.startswith(
        "Queue <q>: deleted, for too few members of PodGroup ml/g were in for more than 60 s"
    )


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The members that are looked at, one after the other."""
    looked: list[str] = []
    observed = Ledger.observed

    def noted(ledger: Ledger, uid: str) -> Pod | None:
        looked.append(uid)
        return observed(ledger, uid)

    monkeypatch.setattr(Ledger, "observed", noted)
    return looked


def test_a_look_goes_through_the_gangs_that_have_changed(looks: list[str]) -> None:
    world = World(TOLD)
    for number in range(500):
        world.half(f"g{number}")
    looks.clear()
    finish(world.gangs.look(0))
    assert len(looks) == 500 * 4, "a new leader knows none of them"
    finish(world.gangs.look(SECOND))
    assert len(looks) == 500 * 4
    world.put(lifted("g7", 3))
    world.put(lifted("g8", 0).bound_to("n"))
    finish(world.gangs.look(2 * SECOND))
    assert len(looks) == 500 * 4 + 2 * 4


def test_others_come_to_their_turn_within_a_look_at_a_large_gang(looks: list[str]) -> None:
    world = World(TOLD)
    world.group("large", minimum=1000)
    for number in range(999):
        world.put(lifted("large", number % 60).together(1000).put("metadata", "uid", value=f"uid-{number}"))
    looks.clear()
    most, done = 0, 0
    for _ in world.gangs.look(0):
        most, done = max(most, len(looks) - done), len(looks)
    assert most <= 100
    assert len(looks) == 999


def test_others_come_to_their_turn_between_two_of_very_many_gangs() -> None:
    """Finished ones are among those that are known from before."""
    world = World(TOLD)
    for number in range(200):
        world.half(f"g{number}")
    assert longest_step(world.gangs.look(0)) < 1_000
    world.ledger.put_queue(a_queue("q").cards({"A": 1000}).view())
    known = [f"ml/g{number}" for number in range(200)]
    for number in range(200):
        world.put(lifted(f"g{number}", 3))
    assert longest_step(unfinished_gangs(world.ledger, known)) < 1_000


def test_a_member_whose_lift_was_still_being_written_is_given_back_with_the_others() -> None:
    """Two of four run, and one that is let in beside them does not make them whole; they were looked at before that was stored."""
    world = World()
    world.group("g")
    for number in range(2):
        world.put(lifted("g", number).bound_to("n"))
    world.put(member("g", 2))
    stored = lifted("g", 2).needs_node("gpu", "A").written_by("cardquota", "2024-01-01T00:02:00Z")
    waiting = world.ledger.observed("uid-ml-g-2")
    assert waiting is not None
    world.ledger.assume(waiting.ungated(stored.view().annotations))
    assert world.given_back(1) == []
    world.put(stored, second=2)
    assert [second for second in range(2, 200) if world.given_back(second) == ["g-2"]] != []
