"""Gangs by PodGroups of Kubernetes itself: who belongs to one, what it takes to start, and what else may be named beside it."""

from collections.abc import Callable
from typing import Final

import pytest

from core import names, reasons
from core.objects import group_key
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue, a_scheduling_group
from tests.builders.pods import PodBuilder

KEY: Final = "ml/g@scheduling.k8s.io"
OWNER: Final = "uid-j"


def books(quota: int = 8, *, served: bool = True) -> Ledger:
    ledger = Ledger(Settings())
    ledger.serve_groups(served, names.KUBERNETES_GROUPS)
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": quota}).view())
    return ledger


def member(name: str, group: str = "g", queue: str = "q") -> PodBuilder:
    second = int(name[-1]) if name[-1].isdecimal() else 0
    pod = a_pod(name).gpu(1).card("A").gated().in_queue(queue).owned_by("Job", "j", api_version="batch/v1")
    return pod.created(f"2024-01-01T00:00:0{second}Z").in_scheduling_group(group)


def some(count: int, prefix: str = "m") -> list[PodBuilder]:
    return [member(f"{prefix}{number}") for number in range(count)]


def decisions(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> list[Decision]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return Planner(ledger).decide(queue)


def decided(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> tuple[set[str], dict[str, Hold]]:
    """Who is lifted, and who is held and why."""
    found = decisions(ledger, *pods, queue=queue)
    lifted = {each.pod.name for each in found if isinstance(each, Lift)}
    return lifted, {each.pod.name: each for each in found if isinstance(each, Hold)}


def codes(held: dict[str, Hold]) -> set[str]:
    return {hold.why.code for hold in held.values()}


def let_in(name: str, node: str = "a") -> PodBuilder:
    """A member as it is stored once it was lifted with two others, and bound."""
    pod = member(name).charged("q").assigned({"A": 1}).together(3).recorded_in_gang()
    pod = pod.put("spec", "schedulingGates", value=[])
    return pod.bound_to(node) if node else pod


@pytest.mark.parametrize(("quota", "expected"), [(2, 0), (3, 3), (4, 4)])
def test_a_gang_is_lifted_whole_or_not_at_all_and_those_beyond_follow(quota: int, expected: int) -> None:
    ledger = books(quota)
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    lifted, held = decided(ledger, *some(4))
    assert len(lifted) == expected
    if not expected:
        assert codes(held) == {reasons.INSUFFICIENT_SCALAR_QUOTA}
        title = "PodGroup ml/g of scheduling.k8s.io"
        assert f"{title} needs 3 more members at once, 2 fit" in held["m0"].why.message


def test_how_many_were_let_in_and_with_whom_is_on_record() -> None:
    ledger = books()
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    lifts = [each for each in decisions(ledger, *some(3)) if isinstance(each, Lift)]
    assert {lift.records[names.GANG_ANNOTATION] for lift in lifts} == {"3"}
    assert {lift.records[names.GANG_OF_ANNOTATION] for lift in lifts} == {KEY}


def test_too_few_members_wait_and_so_do_those_of_a_podgroup_that_is_missing() -> None:
    ledger = books()
    lifted, held = decided(ledger, *some(2))
    assert (lifted, codes(held)) == (set(), {reasons.POD_GROUP_NOT_FOUND})
    said = held["m0"].why.message
    assert said == "PodGroup ml/g of scheduling.k8s.io is not there; the pod waits for it"
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    lifted, held = decided(ledger)
    assert (lifted, codes(held)) == (set(), {reasons.GANG_INCOMPLETE})
    assert decided(ledger, member("m2"))[0] == {"m0", "m1", "m2"}


def test_it_is_looked_at_again_when_its_podgroup_comes_or_is_made_anew() -> None:
    ledger = books()
    decided(ledger, *some(2))
    for count in (3, 2):
        ledger.wakeups.take_queues()
        ledger.put_group(a_scheduling_group("g").min_count(count).view())
        assert "q" in ledger.wakeups.take_queues()
    ledger.drop_group(KEY)
    lifted, held = decided(ledger)
    assert (lifted, codes(held)) == (set(), {reasons.POD_GROUP_NOT_FOUND})


def test_where_the_kind_is_not_served_each_starts_by_itself_until_it_is() -> None:
    ledger = books(served=False)
    assert decided(ledger, *some(2))[0] == {"m0", "m1"}
    ledger.serve_groups(True, names.KUBERNETES_GROUPS)
    assert codes(decided(ledger, *some(2, "n"))[1]) == {reasons.POD_GROUP_NOT_FOUND}


@pytest.mark.parametrize(
    "policy", [{"basic": {}}, {}, {"gang": {}}, {"gang": {"minCount": "4"}}, {"other": {}}]
)
def test_with_any_other_policy_each_starts_by_itself(policy: object) -> None:
    ledger = books(2)
    ledger.put_group(a_scheduling_group("g").put("spec", "schedulingPolicy", value=policy).view())
    lifted, held = decided(ledger, *some(3))
    assert lifted == {"m0", "m1"}
    assert codes(held) == {reasons.INSUFFICIENT_SCALAR_QUOTA}


def test_podgroups_of_one_name_in_one_namespace_are_two_gangs() -> None:
    ledger = books()
    theirs, ours = (
        a_group("g").in_queue("q").min_member(3).view(),
        a_scheduling_group("g").min_count(2).view(),
    )
    ledger.put_group(theirs)
    ledger.put_group(ours)
    volcano = a_pod("v0").gpu(1).card("A").gated().in_queue("q").in_group("g")
    lifted, held = decided(ledger, member("m0"), volcano)
    assert lifted == set()
    assert "needs 2 more" in held["m0"].why.message
    assert "needs 3 more" in held["v0"].why.message
    assert decided(ledger, member("m1"))[0] == {"m0", "m1"}
    ledger.drop_group(ours.key)
    assert ledger.group(theirs.key) == theirs
    assert codes(decided(ledger)[1]) == {reasons.GANG_INCOMPLETE}


def test_its_members_charge_the_queues_that_they_name_and_are_told_where_these_differ() -> None:
    ledger = books()
    ledger.put_queue(a_queue("other").cards({"A": 8}).view())
    ledger.put_group(
        a_scheduling_group("g").min_count(3).annotation(names.QUEUE_NAME_ANNOTATION, "none").view()
    )
    lifted, held = decided(ledger, member("m0"), member("m1"), member("m2", queue="other"))
    assert lifted == set()
    assert "others of it wait in queue <other>" in held["m0"].why.message
    assert decided(ledger, member("m3"))[0] == {"m0", "m1", "m3"}


# -- what else is named beside it ----------------------------------------------------------------------------------


def test_a_podgroup_of_volcano_that_the_pods_name_wins() -> None:
    ledger = books(2)
    ledger.put_group(a_group("pg").in_queue("q").min_member(2).view())
    found = decisions(ledger, *(pod.in_group("pg") for pod in some(4)))
    lifts = [each for each in found if isinstance(each, Lift)]
    assert [lift.pod.name for lift in lifts] == ["m0", "m1"]
    assert all(names.GANG_OF_ANNOTATION not in lift.records for lift in lifts)


def test_the_one_that_volcano_makes_by_itself_names_the_queue_and_has_to_be_there() -> None:
    ledger = books(2)
    ledger.put_queue(a_queue("other").cards({"A": 2}).view())
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    pods = [pod.in_group(f"podgroup-{OWNER}").scheduler("volcano") for pod in some(3)]
    assert codes(decided(ledger, *pods)[1]) == {reasons.POD_GROUP_NOT_FOUND}
    ledger.put_group(a_group(f"podgroup-{OWNER}").in_queue("other").view())
    for _ in ledger.settle():
        pass
    lifted, held = decided(ledger, queue="other")
    assert (lifted, codes(held)) == (set(), {reasons.INSUFFICIENT_SCALAR_QUOTA})
    ledger.put_queue(a_queue("other").cards({"A": 3}).view())
    assert len(decided(ledger, queue="other")[0]) == 3


def test_the_annotations_of_a_gang_win_and_must_not_say_less_than_the_scheduler_waits_for() -> None:
    ledger = books(3)
    pods = [pod.in_gang("a", 2) for pod in some(4)]
    assert codes(decided(ledger, *pods)[1]) == {reasons.POD_GROUP_NOT_FOUND}
    ledger.put_group(a_scheduling_group("g").min_count(4).view())
    lifted, held = decided(ledger)
    assert (lifted, codes(held)) == (set(), {reasons.GANG_MALFORMED})
    assert "PodGroup ml/g of scheduling.k8s.io has a minCount of 4" in held["m0"].why.message
    ledger.wakeups.take_queues()
    ledger.put_group(a_scheduling_group("g").min_count(2).view())
    assert "q" in ledger.wakeups.take_queues()
    assert len(decided(ledger)[0]) == 3


# -- once they are in ----------------------------------------------------------------------------------------------


def test_a_member_that_is_made_anew_comes_before_all_others() -> None:
    ledger = books(3)
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    older = a_pod("older").gpu(1).card("A").gated().in_queue("q").priority(1000)
    assert decided(ledger, let_in("m0"), let_in("m1"), older, member("n2"))[0] == {"n2"}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda pod: pod.in_group("pg"), id="a PodGroup of Volcano is named"),
        pytest.param(lambda pod: pod.in_group(f"podgroup-{OWNER}"), id="Volcano makes one"),
        pytest.param(lambda pod: pod.put("metadata", "ownerReferences", value=[]), id="its owner lets it go"),
        pytest.param(lambda pod: pod.in_gang("x", 2), id="a gang is named"),
    ],
)
def test_who_was_let_in_with_it_stays_a_member(changed: Callable[[PodBuilder], PodBuilder]) -> None:
    """Else the rest would be short of one, and an unfinished gang comes before all others."""
    ledger = books()
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    for pod in (let_in("m0"), let_in("m1"), changed(let_in("m2"))):
        ledger.put_pod(pod.view())
    assert not ledger.groups.unfinished
    assert ledger.groups.progress(a_scheduling_group("g").min_count(3).view()).counted == 3


@pytest.mark.parametrize("recorded", ["", "ml/x|y", "ml/other@scheduling.k8s.io"])
def test_who_was_let_in_with_others_is_none_however_the_records_read(recorded: str) -> None:
    pod = let_in("m0").annotation(names.GANG_OF_ANNOTATION, recorded)
    assert pod.view().group_key == ""


def test_who_was_let_in_with_a_podgroup_of_volcano_stays_with_that() -> None:
    stored = member("m0").in_group("podgroup-mine").charged("q").assigned({"A": 1})
    stored = stored.put("spec", "schedulingGates", value=[])
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "mine", "controller": True}
    assert stored.put("metadata", "ownerReferences", value=[mine]).view().group_key == "ml/podgroup-mine"


def test_who_was_let_in_by_an_earlier_version_counts() -> None:
    """It left no record. Without them the others would wait for as many as are not to come any more."""
    ledger = books()
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    early = [
        member(f"m{number}").charged("q").assigned({"A": 1}).put("spec", "schedulingGates", value=[])
        for number in range(2)
    ]
    assert decided(ledger, *early, member("n2"))[0] == {"n2"}


@pytest.mark.parametrize("forged", ["", "ml/x|y", "ml/other@scheduling.k8s.io", KEY])
def test_what_a_waiting_pod_says_is_on_record_is_not(forged: str) -> None:
    ledger = books()
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    other = a_pod("x").gpu(1).card("A").gated().in_queue("q")
    pods = (pod.annotation(names.GANG_OF_ANNOTATION, forged) for pod in (*some(2), other))
    lifted, held = decided(ledger, *pods)
    assert lifted == {"x"}
    assert codes(held) == {reasons.GANG_INCOMPLETE}


def test_members_that_ask_for_nothing_count_once_their_scheduler_may_start_them() -> None:
    ledger = books()
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    assert decided(ledger, *some(2))[0] == set()
    assert decided(ledger, a_pod("coordinator").in_scheduling_group("g"))[0] == {"m0", "m1"}


def test_plan_says_it_on_the_podgroup_too() -> None:
    ledger = books(2)
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    pods = [pod.view() for pod in some(3)]
    for pod in pods:
        ledger.put_pod(pod)
    assert {event.object for event in plan(ledger, pods).events} == {
        "PodGroup ml/g of scheduling.k8s.io",
        *(f"Pod ml/m{number}" for number in range(3)),
    }


def test_nothing_is_left_in_the_books_of_members_that_are_gone() -> None:
    ledger = books()
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    views = [pod.in_gang("x", 2).view() for pod in some(2)] + [pod.view() for pod in some(2, "n")]
    for view in views:
        ledger.put_pod(view)
    assert len(ledger.members_of(KEY)) == 2
    for view in views:
        ledger.drop_pod(view.uid)
    assert not ledger.members_of(KEY)


@pytest.mark.parametrize(
    "name",
    [
        "train",
        "train@",
        "@scheduling.k8s.io",
        "train@scheduling.k8s.io",
        "train@scheduling.k8s.io/",
        "/train",
    ],
)
def test_no_annotation_makes_a_pod_a_member_of_a_podgroup_of_kubernetes(name: str) -> None:
    """It may be any text; the field is what says so."""
    pod = a_pod("p").gpu(1).card("A").in_group(name).gated().view()
    assert not group_key.is_kubernetes(pod.group_key)
    assert pod.group_key != group_key.kubernetes(pod.namespace, "train")
