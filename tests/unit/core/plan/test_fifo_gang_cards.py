"""Which gangs hold up a fifo queue though there are cards: not those to which the settings, or their own size, leave none of these."""

import pytest

from core import reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder
from tests.builders.pods import PodBuilder

UNIFORM = {"multiCardJob": "uniform"}
SINGLE = {"multiCardTask": "single"}
SPREAD: dict[str, str] = {}


def member(number: int, card: str = "A|B", count: int = 1) -> PodBuilder:
    pod = a_pod(f"m{number}").gpu(count).card(card).in_group("g")
    return pod.created(f"2024-01-01T00:00:{number:02}Z").gated()


def inside(number: int, minimum: int, card: str, got: str, count: int = 1) -> PodBuilder:
    pod = member(number, card, count).put("spec", "schedulingGates", value=[])
    return pod.charged("q").assigned({got: count}).together(minimum)


def other(card: str, count: int) -> PodBuilder:
    """Of no gang, and has what the gang waits for."""
    pod = a_pod(f"other-{card.lower()}").gpu(count).card(card).in_queue("q")
    return pod.charged("q").assigned({card: count})


def single() -> PodBuilder:
    """Younger than every member of the gang."""
    return a_pod("single").gpu(1).card("B").in_queue("q").gated().created("2024-01-01T00:00:59Z")


def gang(minimum: int) -> GroupBuilder:
    return a_group("g").in_queue("q").min_member(minimum)


def decided(
    settings: dict[str, str], quota: dict[str, int], group: GroupBuilder, *pods: PodBuilder
) -> tuple[str, dict[str, str]]:
    """Who is let in of these and the single one, and why the others are held; the queue has eight cores as well."""
    ledger = Ledger(Settings.model_validate({"cards": settings}))
    for card in "ABC":
        ledger.put_node(a_node(card.lower()).card(card, 16).view())
    ledger.put_queue(a_queue("q").cards(quota).capability(cpu=8).fifo().view())
    ledger.put_group(group.view())
    for pod in (*pods, single()):
        ledger.put_pod(pod.view())
    decisions = list(Planner(ledger).decide("q"))
    let_in = sorted(each.pod.name for each in decisions if isinstance(each, Lift))
    return " ".join(let_in), {each.pod.name: each.why.code for each in decisions if isinstance(each, Hold)}


def lifted(settings: dict[str, str], quota: dict[str, int], group: GroupBuilder, *pods: PodBuilder) -> str:
    """Who is let in of these and the single one."""
    return decided(settings, quota, group, *pods)[0]


def test_a_member_made_anew_for_another_card_than_the_rest_of_a_uniform_gang_has_holds_up_nobody() -> None:
    there = inside(0, 2, "A", "A"), member(1, "B")
    assert decided(UNIFORM, {"A": 4, "B": 4}, gang(2), *there) == ("single", {"m1": reasons.MIXED_CARDS})


def test_one_that_accepts_the_card_of_the_rest_holds_up_all_until_that_comes_free() -> None:
    there = inside(0, 2, "A", "A"), member(1)
    assert lifted(UNIFORM, {"A": 4, "B": 4}, gang(2), *there, other("A", 3)) == ""


CUT = inside(0, 4, "A|B", "A"), inside(1, 4, "A|B", "A"), member(2), member(3)
"""Half of four is in with A."""


@pytest.mark.parametrize("settings", [UNIFORM, SINGLE])
def test_a_gang_whose_card_has_no_quota_left_holds_up_nobody_for_the_sake_of_another_card(
    settings: dict[str, str],
) -> None:
    assert lifted(settings, {"A": 2, "B": 4}, gang(4), *CUT) == "single"


@pytest.mark.parametrize("settings", [UNIFORM, SINGLE])
def test_one_whose_card_others_have_holds_up_all(settings: dict[str, str]) -> None:
    assert lifted(settings, {"A": 4, "B": 4}, gang(4), *CUT, other("A", 2)) == ""


def test_where_members_may_have_different_cards_the_other_one_counts() -> None:
    assert lifted(SPREAD, {"A": 2, "B": 4}, gang(4), *CUT, other("B", 4)) == ""
    assert lifted(SPREAD, {"A": 2, "B": 4}, gang(4), *CUT) == "m2 m3 single"


def begun(*waiting: PodBuilder) -> tuple[PodBuilder, ...]:
    """A member that needs no card is in."""
    without = a_pod("m0").in_group("g").mgpu(core=1).charged("q").together(1 + len(waiting))
    return without, *waiting


@pytest.mark.parametrize("settings", [UNIFORM, SINGLE])
def test_a_gang_that_needs_one_card_which_is_still_open_holds_up_nobody_where_none_suffices(
    settings: dict[str, str],
) -> None:
    there = begun(*(member(number) for number in (1, 2, 3)))
    assert lifted(settings, {"A": 2, "B": 2}, gang(4), *there) == "single"
    assert lifted(settings, {"A": 3, "B": 2}, gang(4), *there, other("A", 1)) == ""


def test_each_task_may_have_a_card_of_its_own() -> None:
    there = begun(*(member(number).task("vw"[number % 2]) for number in (1, 2, 3, 4)))
    assert lifted(SINGLE, {"A": 2, "B": 2}, gang(5), *there, other("A", 2)) == ""
    assert lifted(UNIFORM, {"A": 2, "B": 2}, gang(5), *there, other("A", 2)) == "single"


def test_members_of_a_task_that_have_several_cards_already_may_get_any_of_these() -> None:
    """They were let in before the setting was made."""
    there = inside(0, 4, "A|B", "A"), inside(1, 4, "A|B", "B"), member(2), member(3)
    assert lifted(SINGLE, {"A": 2, "B": 2}, gang(4), *there, other("A", 1)) == ""


def test_a_member_of_which_nobody_knows_which_card_it_has_leaves_its_task_the_choice_of_one() -> None:
    """Somebody else took its gate away."""
    forced = member(0).put("spec", "schedulingGates", value=[]).charged("q").together(3)
    assert lifted(SINGLE, {"A": 1, "B": 1}, gang(3), forced, member(1), member(2)) == "single"
    assert lifted(SINGLE, {"A": 2, "B": 1}, gang(3), forced, member(1), member(2), other("A", 2)) == ""


LARGE = inside(0, 4, "A|B", "A", 3), *(member(number, "A|B", 3) for number in (1, 2, 3))
"""One of four is in with three A; the others ask for three each."""


def test_what_is_left_of_several_cards_does_not_add_up_to_one_member() -> None:
    """Five A and four B are nine, and have room for two members of three."""
    assert lifted(SPREAD, {"A": 8, "B": 4}, gang(4), *LARGE) == "single"


def test_a_gang_of_which_all_fit_each_onto_one_card_holds_up_all() -> None:
    assert lifted(SPREAD, {"A": 8, "B": 6}, gang(4), *LARGE, other("B", 5)) == ""


def test_nor_do_members_have_more_than_there_is_of_all_their_cards() -> None:
    """Of each card two of them would fit, the smallest ones: but these are the same."""
    sizes = enumerate((2, 3, 4, 4), 1)
    there = begun(*(member(number, "A|B", size) for number, size in sizes))
    assert lifted(SPREAD, {"A": 6, "B": 6}, gang(5), *there) == "single"
    assert lifted(SPREAD, {"A": 6, "B": 7}, gang(5), *there, other("B", 7)) == ""


def test_members_without_a_choice_do_not_have_each_others_cards() -> None:
    """Two need A, of which one is left, and of B there is plenty."""
    there = inside(0, 4, "A", "A"), member(1, "A"), member(2, "A"), member(3, "B")
    assert lifted(SPREAD, {"A": 2, "B": 8}, gang(4), *there) == "single"
    assert lifted(SPREAD, {"A": 3, "B": 8}, gang(4), *there, other("A", 2)) == ""


def test_nobody_counts_twice_who_accepts_two_cards() -> None:
    """One of them may have A or B, and the two others have to share the only C."""
    there = inside(0, 4, "A", "A"), member(1, "A|B"), member(2, "C"), member(3, "C")
    assert lifted(SPREAD, {"A": 8, "B": 8, "C": 1}, gang(4), *there) == "single"
    assert lifted(SPREAD, {"A": 8, "B": 8, "C": 2}, gang(4), *there, other("C", 1)) == ""


@pytest.mark.parametrize(("left", "cores"), [(1, 1), (8, 5)], ids=["too few cards", "too few cores"])
def test_the_members_of_a_task_that_has_to_be_in_are_not_made_up_for_by_those_of_another(
    left: int, cores: int
) -> None:
    """Of w two are lacking, for which there is too little; more of v than the gang needs would fit."""
    group = gang(4).min_task("v", 2).min_task("w", 2)
    held = (inside(number, 4, "A", "A").task("v") for number in (0, 1))
    of_v = (member(number, "A").task("v") for number in (2, 3))
    of_w = (member(number, "B").task("w").request("cpu", cores) for number in (4, 5))
    assert lifted(SPREAD, {"A": 8, "B": left}, group, *held, *of_v, *of_w) == "single"


def test_what_a_member_holds_that_is_being_deleted_will_be_there_for_the_one_in_its_place() -> None:
    """It has long to go, and so holds its cards until it is gone."""
    leaving = inside(0, 2, "A", "A", 2).bound_to("a").terminating(grace_s=86400)
    there = leaving, inside(1, 2, "A", "A", 2).bound_to("a"), member(2, "A", 2)
    assert lifted(SPREAD, {"A": 4, "B": 4}, gang(2), *there) == ""
