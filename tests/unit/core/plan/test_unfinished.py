"""Gangs that were cut short: who is told, and whose members are given back, and when."""

import pytest

from core import reasons
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.unfinished import (
    Unfinished,
    UnfinishedGangs,
    given_back_notice,
    unfinished_gangs,
    unfinished_notice,
)
from core.queues.ledger import Ledger
from core.settings import ReservationSettings, Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

SECOND = 10**6
GIVES_BACK = ReservationSettings(warn_after_s=600, unfinished_after_s=60)
TOLD = ReservationSettings(warn_after_s=600)


class World:
    """A queue with six cards, and gangs of four of which three members are lifted and one waits."""

    def __init__(self, settings: ReservationSettings = GIVES_BACK) -> None:
        self.ledger = Ledger(Settings())
        self.since: dict[str, int] = {}
        self.gangs = UnfinishedGangs(self.ledger, settings, self.since.get)
        self.ledger.put_node(a_node("n").card("A", 16).view())
        self.ledger.put_queue(a_queue("q").cards({"A": 6}).view())

    def group(self, name: str, created: str = "2024-01-01T00:00:00Z", minimum: int = 4) -> None:
        self.ledger.put_group(
            a_group(name).in_queue("q").min_member(minimum).created(created).uid(name).view()
        )

    def half(self, name: str, created: str = "2024-01-01T00:00:00Z", *, second: int = 0) -> None:
        self.group(name, created)
        for number in range(3):
            self.put(lifted(name, number), second)
        self.put(member(name, 3), second)

    def put(self, pod: PodBuilder, second: int = 0) -> None:
        view = pod.view()
        self.since.setdefault(view.uid, second * SECOND)
        self.ledger.put_pod(view)

    def drop(self, *names: str) -> None:
        for name in names:
            self.ledger.drop_pod(f"uid-ml-{name}")

    def unfinished(self) -> list[Unfinished]:
        return [gang for gang in unfinished_gangs(self.ledger) if gang is not None]

    def told(self, second: int) -> list[str]:
        finish(self.gangs.look(second * SECOND))
        return [gang.group.name for gang in self.gangs.take_late(second * SECOND)]

    def given_back(self, second: int) -> list[str]:
        finish(self.gangs.look(second * SECOND))
        return [pod.name for pod in finish(self.gangs.take_condemned(second * SECOND))]


def member(gang: str, number: int) -> PodBuilder:
    pod = a_pod(f"{gang}-{number}").gpu(1).card("A").in_group(gang).owned_by("Job", gang)
    return pod.gated().created(f"2024-01-01T00:01:{number:02}Z")


def lifted(gang: str, number: int) -> PodBuilder:
    return lifted_alone(gang, number).together(4)


def lifted_alone(gang: str, number: int) -> PodBuilder:
    pod = member(gang, number).put("spec", "schedulingGates", value=[])
    return pod.assigned({"A": 1}).charged("q")


OLD, YOUNG = "2024-01-01T00:00:00Z", "2024-01-01T00:00:10Z"


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


def test_of_two_the_younger_one_gives_back_and_the_older_one_is_finished_by_that() -> None:
    world = World()
    world.half("young", YOUNG)
    world.half("old", OLD)
    world.given_back(0)
    assert world.given_back(60) == ["young-0", "young-1", "young-2"]
    world.drop("young-0", "young-1", "young-2")
    lifts = [
        decision.pod.name for decision in Planner(world.ledger).decide("q") if hasattr(decision, "lifted")
    ]
    assert lifts == ["old-3"]
    assert world.given_back(100) == []


def test_members_beyond_what_one_gang_lacks_leave_what_another_one_lacks() -> None:
    """Else the other one stays in half for good, for what nobody needs."""
    world = World()
    world.ledger.put_queue(a_queue("q").cards({"A": 8}).view())
    world.half("old", OLD)
    world.half("young", YOUNG)
    world.put(member("old", 4))
    world.put(a_pod("alone").gpu(1).card("A").in_queue("q").priority(9).gated())
    lifts = [each.pod.name for each in Planner(world.ledger).decide("q") if hasattr(each, "lifted")]
    assert lifts == ["old-3", "young-3"]
    world.ledger.put_queue(a_queue("q").cards({"A": 9}).view())
    lifts = [each.pod.name for each in Planner(world.ledger).decide("q") if hasattr(each, "lifted")]
    assert lifts == ["alone"], "it comes when it would if its gang were whole"


def test_a_gang_with_a_choice_leaves_the_only_card_of_another_one_to_it() -> None:
    """Although it comes before the other one, and its members that are in have that card."""
    world = World()
    world.ledger.put_node(a_node("m").card("B", 16).view())
    world.ledger.put_queue(a_queue("q").cards({"A": 7, "B": 1}).view())
    world.half("old", OLD)
    world.half("young", YOUNG)
    world.put(member("old", 3).card("A|B"))
    lifts = {
        each.pod.name: dict(each.assigned)
        for each in Planner(world.ledger).decide("q")
        if isinstance(each, Lift)
    }
    assert lifts == {"young-3": {"A": 1}, "old-3": {"B": 1}}


def test_halves_that_were_let_in_one_by_one_are_told_and_solved_and_come_before_nobody() -> None:
    world = World()
    world.ledger.put_queue(a_queue("q").cards({"A": 7}).view())
    for gang, created in (("young", YOUNG), ("old", OLD)):
        world.group(gang, created)
        for number in range(3):
            world.put(lifted_alone(gang, number))
        world.put(member(gang, 3))
    world.put(a_pod("first").gpu(1).card("A").priority(1).gated().in_group("solo"))
    world.group("solo", YOUNG, minimum=1)
    assert sorted(gang.group.name for gang in world.unfinished()) == ["old", "young"]
    lifts = [each.pod.name for each in Planner(world.ledger).decide("q") if hasattr(each, "lifted")]
    assert lifts == ["first"], "the priority decides, for nothing is on record"
    assert world.told(0) == []
    assert sorted(world.told(60)) == ["old", "young"]
    assert world.given_back(60) == ["young-0", "young-1", "young-2"]
    world.drop("young-0", "young-1", "young-2")
    (lift,) = (each for each in Planner(world.ledger).decide("q") if hasattr(each, "lifted"))
    assert lift.pod.name == "old-3"
    world.put(lifted("old", 3))
    assert world.given_back(200) == []
    assert world.unfinished() == []


def test_the_next_one_has_its_turn_when_the_one_before_is_gone_and_it_was_not_helped() -> None:
    world = World()
    world.half("young", YOUNG)
    world.half("old", OLD)
    world.given_back(0)
    assert world.given_back(60)[0] == "young-0"
    assert world.given_back(70) == []
    world.drop("young-0", "young-1", "young-2")
    assert world.given_back(71) == []
    assert world.given_back(80) == []
    assert world.given_back(81) == ["old-0", "old-1", "old-2"]


def test_one_whose_members_do_not_go_does_not_hold_up_the_next_one_for_ever() -> None:
    world = World()
    world.half("young", YOUNG)
    world.half("old", OLD)
    world.given_back(0)
    assert world.given_back(60)[0] == "young-0"
    assert world.given_back(120) == []
    assert world.given_back(121) == []
    assert world.given_back(131) == ["old-0", "old-1", "old-2"]


def test_a_gang_of_less_priority_gives_back_before_a_younger_one() -> None:
    world = World()
    world.half("low", OLD)
    world.group("high", YOUNG)
    for number in range(3):
        world.put(lifted("high", number).priority(9))
    world.put(member("high", 3).priority(9))
    world.given_back(0)
    assert world.given_back(60)[0] == "low-0"


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


def test_a_gang_of_which_nobody_can_be_given_back_leaves_the_turn_to_another_one() -> None:
    world = World()
    world.half("young", YOUNG)
    for number in range(3):
        world.put(lifted("young", number).put("metadata", "ownerReferences", value=[]))
    world.half("old", OLD)
    world.given_back(0)
    assert world.given_back(60)[0] == "old-0"


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
