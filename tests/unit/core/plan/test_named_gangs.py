"""Gangs without PodGroup: their members are lifted whole or not at all, whatever they say of themselves."""

from collections.abc import Callable

import pytest

from core import names, reasons
from core.objects import Pod
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

JOB = "j"


def books(quota: int = 8, **of_b: int) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": quota, **of_b}).view())
    return ledger


def member(
    name: str, size: int | str = 4, gang: str = "g", *, owner: str = JOB, card: str = "A", queue: str = "q"
) -> PodBuilder:
    second = int(name[-1]) if name[-1].isdecimal() else 0
    pod = a_pod(name, namespace="ml").gpu(1).card(card).gated().in_queue(queue)
    return pod.in_gang(gang, size, owner=owner).created(f"2024-01-01T00:00:0{second}Z")


def four(
    prefix: str = "m", gang: str = "g", owner: str = JOB, count: int = 4, card: str = "A"
) -> list[PodBuilder]:
    return [member(f"{prefix}{number}", gang=gang, owner=owner, card=card) for number in range(count)]


def decided(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> tuple[set[str], dict[str, Hold]]:
    """Who is lifted, and who is held and why."""
    for pod in pods:
        ledger.put_pod(pod.view())
    found = Planner(ledger).decide(queue)
    lifted = {each.pod.name for each in found if isinstance(each, Lift)}
    return lifted, {each.pod.name: each for each in found if isinstance(each, Hold)}


@pytest.mark.parametrize(("quota", "expected"), [(3, 0), (4, 4), (5, 4)])
def test_a_gang_is_lifted_whole_or_not_at_all(quota: int, expected: int) -> None:
    lifted, held = decided(books(quota), *four())
    assert len(lifted) == expected
    if not expected:
        why = held["m0"].why
        assert why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
        assert "gang ml/g needs 4 more members at once, 3 fit" in why.message


def test_the_number_that_was_let_in_is_on_record() -> None:
    ledger = books()
    for pod in four():
        ledger.put_pod(pod.view())
    lifts = [each for each in Planner(ledger).decide("q") if isinstance(each, Lift)]
    assert {lift.records[names.GANG_ANNOTATION] for lift in lifts} == {"4"}


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


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda pod: pod.in_group("pg"), id="a PodGroup is named"),
        pytest.param(lambda pod: pod.label("leaderworkerset.sigs.k8s.io/group-key", "x"), id="a group label"),
        pytest.param(lambda pod: pod.put("metadata", "ownerReferences", value=[]), id="its owner lets it go"),
        pytest.param(lambda pod: pod.owned_by("Job", "other", api_version="batch/v1"), id="another owner"),
    ],
)
def test_whatever_becomes_of_its_labels_and_owners_who_was_let_in_stays_in_its_gang(
    changed: Callable[[PodBuilder], PodBuilder],
) -> None:
    """Else the rest would be short of one, and an unfinished gang comes before all others."""
    ledger = books(8)
    lifts = [found for found in _decisions(ledger, *four()) if isinstance(found, Lift)]
    for lift in lifts:
        ledger.put_pod(lift.lifted)
    key = lifts[0].pod.group_key
    assert {lift.records[names.GANG_OF_ANNOTATION] for lift in lifts} == {key}
    stored = (
        member("m0").charged("q").assigned({"A": 1}).together(4).annotation(names.GANG_OF_ANNOTATION, key)
    )
    ledger.put_pod(changed(stored.put("spec", "schedulingGates", value=[])).view())
    now = ledger.pod(stored.view().uid)
    assert now is not None
    assert now.group_key == key
    assert not ledger.groups.unfinished


def _decisions(ledger: Ledger, *pods: PodBuilder) -> list[Hold | Lift]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return list(Planner(ledger).decide("q"))


def let_in(pod: Pod, together: int, node: str = "a") -> PodBuilder:
    """The pod as it is stored once it was lifted and bound."""
    bound = member(pod.name).charged("q").assigned({"A": 1}).together(together).recorded_in_gang()
    return bound.put("spec", "schedulingGates", value=[]).bound_to(node) if node else bound


def test_a_member_that_is_made_anew_comes_before_all_others() -> None:
    """As of a PodGroup: of the four that were let in three are left, and one card is free."""
    ledger = books(4)
    older = a_pod("older", namespace="ml").gpu(1).card("A").gated().in_queue("q").priority(1000)
    three = [let_in(pod.view(), 4) for pod in four(count=3)]
    assert decided(ledger, *three, older, member("n9"))[0] == {"n9"}


@pytest.mark.parametrize("raised", [5, 6, 7])
def test_members_that_a_raised_size_wants_besides_are_let_in_together_or_not_at_all(raised: int) -> None:
    """Of four one was lost, and is back; two more come and say a larger size. One of them alone would start nothing."""
    ledger = books(5)
    three = [let_in(pod.view(), 4) for pod in four(count=3)]
    new = [member(f"n{number}", raised) for number in range(3, 6)]
    lifted, _ = decided(ledger, *three, *new)
    assert lifted == ({"n3", "n4"} if raised == 5 else {"n3"})
    urgent = a_pod("urgent", namespace="ml").gpu(1).card("A").gated().in_queue("q").priority(1000)
    ledger.put_queue(a_queue("q").cards({"A": 6}).view())
    assert "urgent" in decided(ledger, urgent)[0]


def test_succeeded_members_count_and_failed_ones_are_made_anew() -> None:
    ledger = books(4)
    done = let_in(member("m0").view(), 4).phase("Succeeded")
    failed = let_in(member("m1").view(), 4).phase("Failed")
    running = [let_in(member(f"m{number}").view(), 4) for number in (2, 3)]
    assert decided(ledger, done, failed, *running, member("n4"))[0] == {"n4"}


@pytest.mark.parametrize(("owner", "lifted"), [("", 0), (JOB, 3)])
def test_pods_without_owner_start_anew_once_all_of_their_name_have_ended(owner: str, lifted: int) -> None:
    """The next run of the same name; of a Job's pods one that is made anew joins those that have done their part."""

    def ended(name: str) -> PodBuilder:
        done = member(name, owner=owner).charged("q").assigned({"A": 1}).together(4).recorded_in_gang()
        return done.put("spec", "schedulingGates", value=[]).bound_to("a").phase("Succeeded")

    ledger = books()
    again = [member(f"n{number}", owner=owner) for number in range(3)]
    assert len(decided(ledger, *(ended(f"m{number}") for number in range(4)), *again)[0]) == lifted
    assert len(decided(ledger, member("n3", owner=owner))[0]) == 4 - lifted


@pytest.mark.parametrize("forged", ["ml/g|uid-Job-k", "ml/pg", "other/g|x", "ml/g|", "x" * 300])
def test_what_a_waiting_pod_says_is_on_record_is_not(forged: str) -> None:
    """Webhook and policies may be away; nothing is on record of a pod that nobody has let in."""
    lifted, held = decided(
        books(), *four(count=3), member("m3", owner="k").annotation(names.GANG_OF_ANNOTATION, forged)
    )
    assert lifted == set()
    assert {hold.why.code for hold in held.values()} == {reasons.GANG_INCOMPLETE}


def test_a_member_of_a_podgroup_stays_one_though_it_names_a_gang_and_its_owner_changes_to_fit() -> None:
    """Else whoever may write owner references takes it away, and the PodGroup, cut in half, comes before all others."""
    ledger = books(4)
    pods = [pod.in_group("podgroup-mine") for pod in four()]
    ledger.put_group(a_group("podgroup-mine", namespace="ml").in_queue("q").min_member(4).view())
    lifts = [found for found in _decisions(ledger, *pods) if isinstance(found, Lift)]
    assert len(lifts) == 4
    assert all(names.GANG_OF_ANNOTATION not in lift.records for lift in lifts)
    for lift in lifts:
        ledger.put_pod(lift.lifted)
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "mine", "controller": True}
    stored = pods[0].charged("q").assigned({"A": 1}).together(4).put("spec", "schedulingGates", value=[])
    ledger.put_pod(stored.put("metadata", "ownerReferences", value=[mine]).view())
    moved = ledger.pod(stored.view().uid)
    assert moved is not None
    assert moved.group_key == "ml/podgroup-mine"
    assert not ledger.groups.unfinished


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
