"""Tasks that have a minimum of their own (`minTaskMember`): no gang holds quota that cannot start for want of one."""

import pytest

from core.objects.group import MOST_TASKS
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.unfinished import UnfinishedGangs, unfinished_notice
from core.queues.ledger import Ledger
from core.settings import ReservationSettings, Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder
from tests.builders.pods import PodBuilder

SECOND = 10**6
AFTER_S = 60
GIVES_BACK = ReservationSettings(warn_after_s=600, unfinished_after_s=AFTER_S)
ONE_SERVER = a_group("g").in_queue("q").min_task("ps", 1)


def books(group: GroupBuilder, *pods: PodBuilder, quota: int = 8) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": quota}).view())
    ledger.put_group(group.uid("g").view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def member(name: str, task: str, second: int = 0) -> PodBuilder:
    pod = a_pod(name).gpu(1).card("A").in_group("g").task(task).owned_by("Job", "g").gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z")


def lifted(name: str, task: str) -> PodBuilder:
    pod = member(name, task).put("spec", "schedulingGates", value=[])
    return pod.assigned({"A": 1}).charged("q").together(2)


def lifts(ledger: Ledger, *pods: PodBuilder) -> list[Lift]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return [decision for decision in Planner(ledger).decide("q") if isinstance(decision, Lift)]


def names(found: list[Lift]) -> list[str]:
    return [lift.pod.name for lift in found]


def test_where_one_member_is_enough_it_is_one_of_the_task_that_has_to_have_one() -> None:
    """Volcano's scheduler begins with nobody else, whatever minMember says."""
    ledger = books(ONE_SERVER.min_member(1), member("w0", "w"), member("w1", "w", 1))
    assert names(lifts(ledger)) == []
    found = lifts(ledger, member("ps", "ps", 2))
    assert names(found) == ["ps", "w0", "w1"]
    planner = Planner(ledger)
    assert all(planner.stands(lift) for lift in found), "what is decided is written"


@pytest.mark.parametrize(("tasks", "counted"), [(MOST_TASKS, MOST_TASKS), (MOST_TASKS + 1, 0)])
def test_beyond_a_number_of_tasks_minmember_alone_counts(tasks: int, counted: int) -> None:
    """With 70,000 of them, which fit into one PodGroup, each member that changed kept the leader busy for a tenth of a second."""
    group = a_group("g").in_queue("q").min_member(10**6)
    for number in range(tasks):
        group = group.min_task(f"t{number}", 1)
    ledger = books(group, member("w", "w"))
    assert ledger.groups.lacks("ml/g") == 10**6
    assert len(ledger.groups.progress(group.uid("g").view()).missing_tasks) == counted


def test_with_room_for_one_it_is_that_one() -> None:
    ledger = books(ONE_SERVER.min_member(1), member("w0", "w"), member("ps", "ps", 1), quota=1)
    assert names(lifts(ledger)) == ["ps"]


def test_a_gang_that_lost_what_a_task_has_to_have_gives_back_what_it_holds() -> None:
    """Others are in beyond theirs, so it has as many as were let in together, and does not start all the same."""
    ledger = books(
        ONE_SERVER.min_member(2), lifted("w0", "w"), lifted("w1", "w"), member("ps", "ps"), quota=2
    )
    assert names(lifts(ledger)) == []
    gangs = UnfinishedGangs(ledger, GIVES_BACK, lambda _: 0)
    finish(gangs.look(0))
    finish(gangs.look(AFTER_S * SECOND))
    (gang,) = gangs.take_late(AFTER_S * SECOND)
    assert unfinished_notice(gang, GIVES_BACK)[1].startswith(
        "Queue <q>: of 3 members that have to start together 2 are in, for more than 60 s; 2 hold quota and have no node. "
        "It does not start without 1 of task ps, and lacks 1 (the events of those that wait say why); "
    )
    given_back = [pod.name for pod in finish(gangs.take_condemned(AFTER_S * SECOND))]
    assert given_back == ["w0", "w1"]
    for name in given_back:
        ledger.drop_pod(f"uid-ml-{name}")
    assert names(lifts(ledger, member("w2", "w", 5), member("w3", "w", 6))) == ["ps", "w2"]


def test_it_comes_before_nobody_for_nothing_is_on_record_about_tasks() -> None:
    """Else whoever raises the minimum of a task would come before all others with it."""
    ledger = books(ONE_SERVER.min_member(2), lifted("w0", "w"), lifted("w1", "w"), quota=3)
    first = a_pod("first").gpu(1).card("A").in_queue("q").priority(1).gated()
    assert names(lifts(ledger, member("ps", "ps"), first)) == ["first"]


def test_one_whose_members_have_their_nodes_holds_nothing_for_nothing() -> None:
    ledger = books(ONE_SERVER.min_member(2), *(lifted(f"w{n}", "w").bound_to("a") for n in range(2)))
    assert not ledger.groups.short
    ledger.put_pod(lifted("w2", "w").view())
    assert [*ledger.groups.short] == ["ml/g"], "one more that was let in waits for the task as well"


def test_as_many_as_were_let_in_together_would_not_do_where_others_are_in_beyond_theirs() -> None:
    """Three servers and none of the two trainers: one more member is let in by nobody, two trainers together are."""
    group = a_group("g").in_queue("q").min_member(4).min_task("v", 2).min_task("w", 2)
    held = [lifted(f"w{number}", "w").together(4).bound_to("a") for number in range(3)]
    lost = [member(f"v{number}", "v", number) for number in range(2)]
    ledger = books(group, *held, *lost, quota=4)
    assert names(lifts(ledger)) == []
    assert not ledger.groups.unfinished, "it comes before nobody"
    ledger.put_queue(a_queue("q").cards({"A": 5}).view())
    assert names(lifts(ledger)) == ["v0", "v1"]


def test_of_those_who_were_let_in_to_make_it_whole_again_the_last_one_comes_first_too() -> None:
    """Two trainers together, beside three servers where two have to be: five, though four are the minimum. One lift is stored."""
    group = a_group("g").in_queue("q").min_member(4).min_task("v", 2).min_task("w", 2)
    held = [lifted(f"w{number}", "w").together(4).bound_to("a") for number in range(3)]
    lost = [member(f"v{number}", "v", number) for number in range(2)]
    first, second = lifts(books(group, *held, *lost, quota=5))
    assert first.records["cardquota.io/gang"] == second.records["cardquota.io/gang"] == "5"
    ledger = books(group, *held, lost[1], quota=5)
    ledger.put_pod(first.lifted)
    urgent = a_pod("urgent").gpu(1).card("A").in_queue("q").priority(9).gated()
    assert [*ledger.groups.unfinished] == ["ml/g"]
    assert names(lifts(ledger, urgent)) == ["v1"]


def test_nor_does_a_minimum_that_was_raised_since_let_one_of_them_in_alone() -> None:
    group = a_group("g").in_queue("q").min_task("v", 2).min_task("w", 2)
    held = [lifted(f"w{number}", "w").together(4).bound_to("a") for number in range(3)]
    lost = [member(f"v{number}", "v", number + 5) for number in range(2)]
    older = a_pod("older").gpu(1).card("A").in_queue("q").created("2024-01-01T00:00:01Z").priority(1).gated()
    ledger = books(group.min_member(5), *held, *lost, older, quota=4)
    assert names(lifts(ledger)) == ["older"]
    gangs = UnfinishedGangs(ledger, GIVES_BACK, lambda _: 0)
    finish(gangs.look(0))
    (gang,) = gangs.take_late(AFTER_S * SECOND)
    assert "of 5 members that have to start together 3 are in" in unfinished_notice(gang, GIVES_BACK)[1]
    assert [pod.name for pod in gang.concerned] == ["v0"], "nobody who is in waits for a node"
    ledger.put_queue(a_queue("q").cards({"A": 6}).view())
    assert {"v0", "v1"} <= set(names(lifts(ledger)))
