"""Several gangs that were cut short: whose turn it is to give back, and who gets what is free."""

from core.plan.decision import Lift
from core.plan.lift import Planner
from tests.builders import a_node, a_pod, a_queue
from tests.unit.core.plan.halves import OLD, YOUNG, World, lifted, lifted_alone, member


def cards_given(world: World) -> dict[str, dict[str, int]]:
    """The cards of those that are lifted, by their names."""
    decisions = Planner(world.ledger).decide("q")
    return {each.pod.name: dict(each.assigned) for each in decisions if isinstance(each, Lift)}


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
    assert cards_given(world) == {"young-3": {"A": 1}, "old-3": {"B": 1}}


def test_a_gang_whose_members_take_different_cards_without_a_choice_comes_before_one_that_may_choose() -> (
    None
):
    """Both may take two kinds of cards, all together; one of each is left, and another B."""
    world = World()
    world.ledger.put_node(a_node("m").card("B", 16).view())
    world.ledger.put_queue(a_queue("q").cards({"A": 6, "B": 2}).view())
    world.half("old", OLD)
    world.half("young", YOUNG)
    world.put(member("old", 3).card("A|B"))
    world.put(member("young", 2).card("B"))
    assert cards_given(world) == {"young-2": {"B": 1}, "young-3": {"A": 1}, "old-3": {"B": 1}}


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


def test_a_gang_of_which_nobody_can_be_given_back_leaves_the_turn_to_another_one() -> None:
    world = World()
    world.half("young", YOUNG)
    for number in range(3):
        world.put(lifted("young", number).put("metadata", "ownerReferences", value=[]))
    world.half("old", OLD)
    world.given_back(0)
    assert world.given_back(60)[0] == "old-0"
