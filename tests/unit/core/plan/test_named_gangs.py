"""Gangs without PodGroup: their members are lifted whole or not at all, whatever they say of themselves."""

import pytest

from core import names, reasons
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.core.plan.named_gangs import JOB, books, decided, four, member


@pytest.mark.parametrize(("quota", "expected"), [(3, 0), (4, 4), (5, 4)])
def test_a_gang_is_lifted_whole_or_not_at_all(quota: int, expected: int) -> None:
    lifted, held = decided(books(quota), *four())
    assert len(lifted) == expected
    if not expected:
        why = held["m0"].why
        assert why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
        assert "gang ml/g needs 4 more members at once, 3 fit" in why.message


def test_two_gangs_of_four_in_a_quota_of_six_do_not_take_three_each() -> None:
    turns = [pod for pair in zip(four(), four("n", owner="k"), strict=True) for pod in pair]
    lifted, held = decided(books(6), *turns)
    assert lifted in ({"m0", "m1", "m2", "m3"}, {"n0", "n1", "n2", "n3"})
    assert len(held) == 4


def test_replicas_of_one_set_do_not_make_up_a_gang_together() -> None:
    """Two of four under each of two owners."""
    lifted, held = decided(books(), *four(count=2), *four("n", owner="k", count=2))
    assert lifted == set()
    assert {hold.why.code for hold in held.values()} == {reasons.GANG_INCOMPLETE}


def test_a_gang_that_lacks_members_waits_and_says_so_and_starts_with_the_last_one() -> None:
    ledger = books()
    lifted, held = decided(ledger, *four(count=3))
    assert lifted == set()
    assert held["m0"].why.message == "Queue <q>: gang ml/g needs 4 more members at once, with only 3 ready"
    assert decided(ledger, member("m3"))[0] == {"m0", "m1", "m2", "m3"}


def test_members_beyond_the_size_follow_one_by_one() -> None:
    ledger = books(5)
    lifted, held = decided(ledger, *four(count=7))
    assert lifted == {"m0", "m1", "m2", "m3", "m4"}
    assert {hold.why.code for hold in held.values()} == {reasons.INSUFFICIENT_SCALAR_QUOTA}


def test_where_members_say_different_sizes_the_largest_counts_until_who_says_it_is_gone() -> None:
    ledger = books()
    odd = member("m3", 6)
    lifted, held = decided(ledger, *four(count=3), odd)
    assert lifted == set()
    assert (
        "its members say cardquota.io/gang-size 4 to 6, of which the largest counts" in held["m0"].why.message
    )
    ledger.drop_pod(odd.view().uid)
    assert decided(ledger, member("n3"))[0] == {"m0", "m1", "m2", "n3"}


def test_members_for_several_queues_wait_in_all_of_them_and_are_told() -> None:
    ledger = books()
    ledger.put_queue(a_queue("other").cards({"A": 8}).view())
    away = member("m3", queue="other")
    lifted, held = decided(ledger, *four(count=3), away)
    assert lifted == set()
    assert "others of it wait in queue <other>" in held["m0"].why.message
    assert decided(ledger, queue="other")[0] == set()


def test_the_same_name_in_two_namespaces_is_two_gangs() -> None:
    ledger = books()
    elsewhere = [
        pod.put("metadata", "namespace", value="ai").uid(f"ai{n}") for n, pod in enumerate(four(count=2))
    ]
    assert decided(ledger, *four(count=2), *elsewhere)[0] == set()


@pytest.mark.parametrize("size", ["0", "-1", "+4", "1000000", "\uff14", "", "9" * 5000])
def test_a_size_that_came_past_the_webhook_and_cannot_be_read_holds_the_pod(size: str) -> None:
    """Nobody knows with whom it would have to start; others are not concerned."""
    lifted, held = decided(books(), member("m0", size), member("n1", 1))
    assert lifted == {"n1"}
    assert held["m0"].why.code == reasons.GANG_MALFORMED
    assert names.GANG_SIZE_ANNOTATION in held["m0"].why.message
    assert len(held["m0"].why.message) < 400


def test_half_a_name_holds_nobody_back() -> None:
    half = member("m0").build()
    del half["metadata"]["annotations"][names.GANG_SIZE_ANNOTATION]
    assert decided(books(), PodBuilder(half))[0] == {"m0"}


def test_a_podgroup_that_the_pods_name_wins() -> None:
    ledger = books(2)
    ledger.put_group(a_group("pg", namespace="ml").in_queue("q").min_member(2).view())
    assert decided(ledger, *(pod.in_group("pg") for pod in four()))[0] == {"m0", "m1"}


def test_no_annotation_that_names_a_podgroup_makes_a_pod_a_member_of_a_gang() -> None:
    """It may be any text, the key of a gang of somebody else as well."""
    ledger = books()
    key = member("m0").view().group_key
    other = a_pod("m9").gpu(1).card("A").gated().in_queue("q").in_group(key.partition("/")[2])
    lifted, held = decided(ledger, *four()[:3], other)
    assert lifted == set()
    assert held["m9"].why.code == reasons.POD_GROUP_NOT_FOUND
    assert held["m0"].why.code == reasons.GANG_INCOMPLETE


def test_volcanos_own_podgroup_of_an_owner_names_the_queue_and_the_gang_stays_whole() -> None:
    ledger = books(3)
    ledger.put_queue(a_queue("other").cards({"A": 3}).view())
    owner = member("m0").build()["metadata"]["ownerReferences"][0]["uid"]
    pods = [pod.in_group(f"podgroup-{owner}").scheduler("volcano") for pod in four()]
    ledger.serve_groups(True)
    _, held = decided(ledger, *pods)
    assert {hold.why.code for hold in held.values()} == {reasons.POD_GROUP_NOT_FOUND}
    ledger.put_group(a_group(f"podgroup-{owner}", namespace="ml").in_queue("other").min_member(1).view())
    for _ in ledger.settle():
        pass
    lifted, held = decided(ledger, queue="other")
    assert (lifted, {hold.why.code for hold in held.values()}) == (set(), {reasons.INSUFFICIENT_SCALAR_QUOTA})
    ledger.put_queue(a_queue("other").cards({"A": 4}).view())
    assert len(decided(ledger, queue="other")[0]) == 4


def test_a_podgroup_that_wants_more_than_the_gang_has_holds_it_until_that_changes() -> None:
    """Two would be let in, and their scheduler starts four or none."""
    ledger = books(3)
    owner = member("m0").build()["metadata"]["ownerReferences"][0]["uid"]
    made = a_group(f"podgroup-{owner}", namespace="ml").in_queue("q")
    ledger.put_group(made.min_member(4).view())
    pods = [member(f"m{number}", size=2).in_group(f"podgroup-{owner}") for number in range(4)]
    lifted, held = decided(ledger, *pods)
    assert (lifted, {hold.why.code for hold in held.values()}) == (set(), {reasons.GANG_MALFORMED})
    assert f"PodGroup ml/podgroup-{owner} has a minMember of 4" in held["m0"].why.message
    planner = Planner(ledger)
    assert not [found for found in planner.decide("q") if isinstance(found, Lift)]
    ledger.wakeups.take_queues()
    ledger.put_group(made.min_member(2).view())
    assert "q" in ledger.wakeups.take_queues()
    assert {found.pod.name for found in planner.decide("q") if isinstance(found, Lift)} == {"m0", "m1", "m2"}


def test_a_gang_with_choices_gets_one_card_where_one_serves_all() -> None:
    ledger = books(3, B=4)
    for pod in four(card="A|B"):
        ledger.put_pod(pod.view())
    lifts = [each for each in Planner(ledger).decide("q") if isinstance(each, Lift)]
    assert [dict(lift.assigned) for lift in lifts] == [{"B": 1}] * 4


def test_members_with_shares_and_claims_free_members_start_together() -> None:
    """A gang of a card pod and a pod with shares: without room for the shares neither starts."""
    ledger = books()
    share = (
        a_pod("s1", namespace="ml")
        .mgpu(core=50, memory=1000)
        .gated()
        .in_queue("q")
        .in_gang("g", 2, owner=JOB)
    )
    assert decided(ledger, member("m0", 2), share)[0] == set()
    ledger.put_node(a_node("shared").mgpu(1, memory=10000).view())
    assert decided(ledger)[0] == {"m0", "s1"}


def test_plan_says_it_on_the_members_and_nothing_of_an_object_that_is_not_there() -> None:
    ledger = books(3)
    pods = [pod.view() for pod in four()]
    for pod in pods:
        ledger.put_pod(pod)
    found = plan(ledger, pods)
    assert {each.decision for each in found.pods.values()} == {"hold"}
    assert {event.object for event in found.events} == {f"Pod ml/m{number}" for number in range(4)}
    assert all("gang ml/g" in event.message for event in found.events)


def test_nothing_is_left_in_the_books_of_a_gang_whose_members_are_gone() -> None:
    ledger = books()
    pods = [pod.view() for pod in four()]
    for pod in pods:
        ledger.put_pod(pod)
    group = ledger.group_of(pods[0])
    assert group is not None
    assert (group.min_member, group.created) == (4, pods[0].created)
    for pod in pods:
        ledger.drop_pod(pod.uid)
    assert ledger.group(group.key) is None
    assert not ledger.members_of(group.key)
