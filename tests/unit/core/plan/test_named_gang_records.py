"""What is on record of who was let in with a gang without PodGroup: he stays in it, and who is made anew joins him."""

from collections.abc import Callable

import pytest

from core import names, reasons
from core.objects import Pod
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from tests.builders import a_group, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.core.plan.named_gangs import JOB, books, decided, four, member


def test_the_number_that_was_let_in_is_on_record() -> None:
    ledger = books()
    for pod in four():
        ledger.put_pod(pod.view())
    lifts = [each for each in Planner(ledger).decide("q") if isinstance(each, Lift)]
    assert {lift.records[names.GANG_ANNOTATION] for lift in lifts} == {"4"}


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
