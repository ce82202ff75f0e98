"""Gangs are lifted whole or not at all, on the books of a real ledger."""

import pytest

from core import reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.unit.core.plan.gangs import FOUR, books, group, lifted, member


@pytest.mark.parametrize(("quota", "expected"), [(3, 0), (4, 4), (5, 4)])
def test_a_gang_is_lifted_whole_or_not_at_all(quota: int, expected: int) -> None:
    ledger = books(a_queue("q").cards({"A": quota}), groups=(group(),))
    assert len(lifted(ledger, Planner(ledger), *FOUR)) == expected


def test_a_gang_waits_for_a_node_of_its_card_however_well_the_resource_is_known() -> None:
    settings = Settings.model_validate({"cards": {"resources": {"C": "nvidia.com/gpu"}}})
    ledger = books(a_queue("q").cards({"C": 4}), groups=(group(),), settings=settings)
    planner = Planner(ledger)
    four = [member(f"m{i}", card="C", second=i) for i in range(4)]
    assert lifted(ledger, planner, *four) == []
    ledger.put_node(a_node("c").card("C", 1).view())
    assert len(lifted(ledger, planner)) == 4


def test_two_gangs_of_four_in_a_quota_of_six_do_not_take_three_each() -> None:
    ledger = books(a_queue("q").cards({"A": 6}), groups=(group("g"), group("h")))
    others = [member(f"h{i}", "h", second=i) for i in range(4)]
    assert lifted(ledger, Planner(ledger), *FOUR, *others) == ["m0", "m1", "m2", "m3"]


def test_a_gang_that_does_not_fit_reserves_nothing_and_lets_others_pass() -> None:
    ledger = books(a_queue("q").cards({"A": 3}), groups=(group(),))
    single = a_pod("single").gpu(3).card("A").in_queue("q").gated().created("2024-01-01T00:00:59Z")
    assert lifted(ledger, Planner(ledger), *FOUR, single) == ["single"]
    assert ledger.used("q", "A") == 3000


def test_the_members_that_wait_are_told_why_and_so_is_their_podgroup() -> None:
    ledger = books(a_queue("q").cards({"A": 3}), groups=(group(),))
    views = [pod.view() for pod in FOUR]
    for view in views:
        ledger.put_pod(view)
    result = plan(ledger, views)
    assert {pod.decision for pod in result.pods.values()} == {"hold"}
    assert [(event.object, event.reason) for event in result.events] == [
        ("PodGroup ml/g", reasons.INSUFFICIENT_SCALAR_QUOTA),
        *((f"Pod ml/m{i}", reasons.INSUFFICIENT_SCALAR_QUOTA) for i in range(4)),
    ]
    assert "PodGroup ml/g needs 4 more members at once, 3 fit" in result.events[0].message


def test_a_gang_whose_members_do_not_all_exist_waits_and_starts_when_the_last_one_comes() -> None:
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(),))
    planner = Planner(ledger)
    assert lifted(ledger, planner, *FOUR[:3]) == []
    (decision, *_) = planner.decide("q")
    assert isinstance(decision, Hold)
    assert decision.why.code == reasons.GANG_INCOMPLETE
    ledger.wakeups.take_queues()
    ledger.put_pod(FOUR[3].view())
    assert set(ledger.wakeups.pending) == {"q"}
    assert lifted(ledger, planner) == ["m0", "m1", "m2", "m3"]


def test_members_that_ask_for_nothing_of_ours_count_towards_the_minimum() -> None:
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(),))
    planner = Planner(ledger)
    assert lifted(ledger, planner, *FOUR[:3]) == []
    ledger.wakeups.take_queues()
    ledger.put_pod(a_pod("launcher").in_group("g").view())
    assert set(ledger.wakeups.pending) == {"q"}
    assert lifted(ledger, planner) == ["m0", "m1", "m2"]


def test_failed_and_terminating_members_do_not_count_and_succeeded_ones_do() -> None:
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(),))
    planner = Planner(ledger)
    failed = member("failed").bound_to("a", phase="Failed")
    going = member("going").bound_to("a").terminating()
    assert lifted(ledger, planner, *FOUR[:3], failed, going) == []
    assert lifted(ledger, planner, member("done").bound_to("a", phase="Succeeded")) == ["m0", "m1", "m2"]


def test_beyond_the_minimum_members_are_lifted_one_by_one() -> None:
    ledger = books(a_queue("q").cards({"A": 3}), groups=(group(minimum=2),))
    planner = Planner(ledger)
    assert lifted(ledger, planner, *FOUR) == ["m0", "m1", "m2"]
    ledger.put_queue(a_queue("q").cards({"A": 4}).view())
    assert lifted(ledger, planner) == ["m3"]


def test_a_flexible_member_leaves_the_card_to_one_without_a_choice() -> None:
    ledger = books(a_queue("q").cards({"A": 1, "B": 1}), groups=(group(minimum=2),))
    planner = Planner(ledger)
    ledger.put_pod(member("flexible", card="A|B", second=1).view())
    ledger.put_pod(member("single", card="A", second=2).view())
    assigned = {d.pod.name: d.assigned for d in planner.decide("q") if isinstance(d, Lift)}
    assert assigned == {"flexible": {"B": 1}, "single": {"A": 1}}


def test_task_minimums_choose_the_members() -> None:
    tasks = group(minimum=2).min_task("ps", 1).min_task("worker", 1)
    ledger = books(a_queue("q").cards({"A": 2}), groups=(tasks,))
    pods = [member(f"w{i}", second=i).task("worker") for i in range(3)]
    assert lifted(ledger, Planner(ledger), *pods) == []
    assert lifted(ledger, Planner(ledger), member("ps", second=9).task("ps")) == ["ps", "w0"]


def test_task_minimums_beyond_the_minimum_are_ignored_as_volcano_ignores_them() -> None:
    ledger = books(a_queue("q").cards({"A": 3}), groups=(group(minimum=3).min_task("w", 4),))
    assert lifted(ledger, Planner(ledger), *(pod.task("w") for pod in FOUR)) == ["m0", "m1", "m2"]


def test_a_group_with_a_minimum_of_one_is_lifted_pod_by_pod() -> None:
    ledger = books(a_queue("q").cards({"A": 1}), groups=(group("one", 1),))
    planner = Planner(ledger)
    assert lifted(ledger, planner, *(member(f"o{i}", "one", second=i) for i in range(2))) == ["o0"]


def test_a_member_of_an_unknown_card_keeps_the_gang_from_starting_only_when_it_is_needed() -> None:
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(minimum=3),))
    planner = Planner(ledger)
    unknown = member("unknown", card="GB300", second=0)
    assert lifted(ledger, planner, *FOUR[:2], unknown) == []
    assert lifted(ledger, planner, FOUR[2]) == ["m0", "m1", "m2"]


def test_an_mgpu_gang_needs_room_for_all_its_members_together() -> None:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("m").mgpu(2, memory=16384).view())
    ledger.put_queue(a_queue("q").view())
    ledger.put_group(a_group("g").in_queue("q").min_member(3).view())
    planner = Planner(ledger)
    pods = [a_pod(f"m{i}").mgpu(core=60, memory=2048).in_group("g").gated() for i in range(3)]
    assert lifted(ledger, planner, *pods) == []
    assert ledger.reserved_shares == {}
    ledger.wakeups.take_queues()
    ledger.put_node(a_node("n").mgpu(1, memory=16384).view())
    assert set(ledger.wakeups.pending) == {"q"}
    assert lifted(ledger, planner) == ["m0", "m1", "m2"]


def test_a_trial_that_comes_to_nothing_leaves_nothing_to_do_behind() -> None:
    ledger = books(a_queue("q").cards({"A": 3}), groups=(group(),))
    planner = Planner(ledger)
    lifted(ledger, planner, *FOUR)
    ledger.wakeups.take_queues()
    ledger.wakeups.take_figures()
    planner.decide("q")
    assert (set(ledger.wakeups.pending), ledger.wakeups.take_figures()) == (set(), set())


def test_a_gang_that_nobody_can_work_out_waits_with_a_reason_of_its_own() -> None:
    """There are cards enough, of either kind an odd number; of twenty members each wants another even number of them."""
    ledger = books(a_queue("q").cards({"A": 211, "B": 209}), groups=(group(minimum=20),))
    ledger.put_node(a_node("a").card("A", 800).view())
    ledger.put_node(a_node("b").card("B", 800).view())
    for number in range(20):
        ledger.put_pod(member(f"m{number:02}", card="A|B", count=2 * number + 2, second=number).view())
    (hold, *_) = Planner(ledger).decide("q")
    assert isinstance(hold, Hold)
    assert hold.why.code == reasons.GANG_SEARCH_GIVEN_UP
    assert "PodGroup ml/g needs 20 more members at once, " in hold.why.message
    assert ledger.used("q", "A") == 0


def test_a_gang_of_a_thousand_is_lifted_in_one_pass() -> None:
    ledger = books(a_queue("q").cards({"A": 1000}), groups=(group(minimum=1000),))
    members = [member(f"m{number:03}") for number in range(1000)]
    assert len(lifted(ledger, Planner(ledger), *members)) == 1000


def test_without_its_podgroup_a_pod_waits_until_there_is_one() -> None:
    """It may be late, or just being made anew: members that are lifted in between are half a gang, which nobody finishes."""
    ledger = books(a_queue("q").cards({"A": 6}), groups=(group(),))
    planner = Planner(ledger)
    ledger.drop_group("ml/g")
    assert lifted(ledger, planner, *(pod.in_queue("q") for pod in FOUR)) == []
    holds = [decision for decision in planner.decide("q") if isinstance(decision, Hold)]
    assert {hold.why.code for hold in holds} == {reasons.POD_GROUP_NOT_FOUND}
    assert holds[0].why.message == "PodGroup ml/g is not there; the pod waits for it"
    ledger.wakeups.take_queues()
    ledger.put_group(group().view())
    assert set(ledger.wakeups.pending) == {"q"}
    assert lifted(ledger, planner) == ["m0", "m1", "m2", "m3"]


def test_a_pod_of_volcanos_scheduler_waits_for_the_name_of_its_podgroup() -> None:
    """Where there are PodGroups at all: Volcano's controller makes one for each pod, and names it on the pod."""
    ledger = books(a_queue("q").cards({"A": 6}), groups=())
    before, pod, alike = (
        a_pod(name).gpu(1).card("A").in_queue("q").gated() for name in ("before", "p", "other")
    )
    planner = Planner(ledger)
    assert lifted(ledger, planner, before.scheduler("volcano")) == ["before"]
    ledger.serve_groups(True)
    ledger.serve_groups(False)
    assert lifted(ledger, planner, pod.scheduler("volcano"), alike) == ["other"]
    (hold,) = planner.decide("q")
    assert isinstance(hold, Hold)
    assert hold.why.code == reasons.POD_GROUP_NOT_FOUND
    ledger.put_group(group("g", 1).view())
    assert lifted(ledger, planner, pod.scheduler("volcano").in_group("g")) == ["p"]


def test_a_pod_whose_podgroup_is_missing_does_not_block_a_fifo_queue() -> None:
    ledger = books(a_queue("q").cards({"A": 6}).fifo())
    other = a_pod("other").gpu(1).card("A").in_queue("q").gated().created("2024-01-01T00:00:59Z")
    assert lifted(ledger, Planner(ledger), *(pod.in_queue("q") for pod in FOUR), other) == ["other"]


@pytest.mark.parametrize("minimum", [0, -3])
def test_a_minimum_of_nothing_is_one(minimum: int) -> None:
    ledger = books(a_queue("q").cards({"A": 2}), groups=(group(minimum=minimum),))
    assert lifted(ledger, Planner(ledger), *FOUR) == ["m0", "m1"]


def test_the_minimum_lowered_wakes_the_queue() -> None:
    ledger = books(a_queue("q").cards({"A": 2}), groups=(group(),))
    planner = Planner(ledger)
    assert lifted(ledger, planner, *FOUR) == []
    ledger.wakeups.take_queues()
    ledger.put_group(group(minimum=2).uid("uid-g").view())
    assert set(ledger.wakeups.pending) == {"q"}
    assert lifted(ledger, planner) == ["m0", "m1"]
