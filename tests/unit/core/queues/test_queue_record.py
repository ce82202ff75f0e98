"""What was admitted is charged by its record: nothing that a tenant writes afterwards moves it to another queue."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from core import names
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.backlog import AT_ONCE
from core.queues.ledger import Ledger
from core.queues.queue_records import lacks_queue_record, late_records, records_patch
from core.settings import Settings
from core.stage import Stages
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.pods import PodBuilder

GROUP = a_group("g").in_queue("q")
ASSIGNED = {"A": 1}


def one(name: str = "p") -> PodBuilder:
    """A pod of one card, in the queue by its PodGroup."""
    return a_pod(name).card("A").gpu(1).in_group("g")


def books(*pods: PodBuilder) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for queue in ("q", "other", "default"):
        ledger.put_queue(a_queue(queue).cards({"A": 2}).view())
    ledger.put_group(GROUP.view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def moved_by_annotation(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    return pod.in_queue("other").in_group("")


def moved_by_group(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    ledger.put_group(a_group("g").in_queue("other").view())
    return pod


def moved_to_another_group(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    ledger.put_group(a_group("h").in_queue("other").view())
    return pod.in_group("h")


def group_deleted(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    ledger.drop_group("ml/g")
    return pod


def moved_by_namespace(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    ledger.put_namespace(a_namespace().in_queue("other").view())
    return group_deleted(ledger, pod)


def moved_by_an_owner(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    ledger.put_job(a_job("j").in_queue("other").view())
    return group_deleted(ledger, pod.owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1"))


def moved_to_a_queue_that_is_not_there(ledger: Ledger, pod: PodBuilder) -> PodBuilder:
    ledger.put_group(a_group("g").in_queue("nowhere").view())
    return pod.in_queue("nowhere")


MOVES = [
    moved_by_annotation,
    moved_by_group,
    moved_to_another_group,
    group_deleted,
    moved_by_namespace,
    moved_by_an_owner,
    moved_to_a_queue_that_is_not_there,
]
Move = Callable[[Ledger, PodBuilder], PodBuilder]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("bound", [False, True], ids=["reserved", "bound"])
def test_what_a_tenant_writes_after_the_lift_changes_nothing(move: Move, bound: bool) -> None:
    pod = one().charged("q").assigned(ASSIGNED)
    pod = pod.bound_to("n") if bound else pod
    ledger = books(pod)
    ledger.put_pod(move(ledger, pod).view())
    assert [ledger.used(queue, "A") for queue in ("q", "other", "default", "nowhere")] == [1000, 0, 0, 0]


@pytest.mark.parametrize("move", MOVES)
def test_a_pod_that_waits_goes_where_its_objects_send_it_whatever_record_it_brings(move: Move) -> None:
    """A record before the lift is none of ours."""
    pod = one().gated().charged("q")
    ledger = books(pod)
    changed = move(ledger, pod)
    ledger.put_pod(changed.view())
    assert ledger.attribution(changed.view()).queue != "q"
    assert ledger.waiting("q") == []


def test_the_lift_writes_the_queue_that_was_charged() -> None:
    ledger = books(one().gated())
    (lift,) = Planner(ledger).decide("q")
    assert isinstance(lift, Lift)
    assert lift.records == {names.CHARGED_QUEUE_ANNOTATION: "q", names.ASSIGNED_ANNOTATION: '{"A":1}'}
    assert lift.lifted.annotations[names.CHARGED_QUEUE_ANNOTATION] == "q"


def test_a_move_while_the_lift_is_on_its_way_voids_it_and_what_is_stored_all_the_same_is_charged_by_its_record() -> (
    None
):
    ledger = books(one().gated())
    planner = Planner(ledger)
    (lift,) = planner.decide("q")
    assert isinstance(lift, Lift)
    moved_by_group(ledger, one())
    assert not planner.stands(lift)
    assert ledger.used("q", "A") == 1000
    ledger.put_pod(one().recorded(lift.records).view())
    assert [ledger.used(queue, "A") for queue in ("q", "other")] == [1000, 0]


@pytest.mark.parametrize("move", MOVES)
def test_a_queue_that_was_fixed_stays_until_it_is_released(move: Move) -> None:
    pod = one().assigned(ASSIGNED).bound_to("n")
    ledger = books(pod)
    assert ledger.fix_queue(pod.view()) == "q"
    changed = move(ledger, pod)
    ledger.put_pod(changed.view())
    assert (ledger.used("q", "A"), ledger.fix_queue(changed.view())) == (1000, "q")
    ledger.release_queues()
    assert ledger.used("q", "A") == 0


def test_a_fixed_queue_is_forgotten_with_its_pod() -> None:
    pod = one().bound_to("n")
    ledger = books(pod)
    ledger.fix_queue(pod.view())
    ledger.drop_pod(pod.view().uid)
    moved_by_group(ledger, pod)
    ledger.put_pod(pod.view())
    assert ledger.used("other", "A") == 1000


@pytest.mark.parametrize(
    ("pod", "lacks"),
    [
        (one().bound_to("n"), True),
        (one().assigned(ASSIGNED).bound_to("n"), True),
        (one().assigned(ASSIGNED), True),
        (one().annotation("cardquota.io/lifted", "true"), True),
        (one(), False),
        (one().charged("q"), False),
        (one().charged("q").bound_to("n"), False),
        (one().charged("").bound_to("n"), True),
        (one().gated(), False),
        (one().gated().charged("q"), False),
        (one().bound_to("n", phase="Succeeded"), False),
        (one().bound_to("n").terminating(), False),
        (one().bound_to("n").terminating(grace_s=10**6), True),
        (one().annotation("cardquota.io/gang-name", "g"), False),
        (a_pod("cpu").bound_to("n"), False),
        (a_pod("share").mgpu(core=10, memory=1).bound_to("n"), True),
        (a_pod("claims").claim("c", name="c").bound_to("n"), True),
    ],
)
def test_who_has_to_get_the_record_late(pod: PodBuilder, lacks: bool) -> None:
    """What holds quota and was let in, by an older version, or past us with its node; nobody who waits or has ended."""
    assert lacks_queue_record(pod.view(), Stages(Settings())) is lacks


def test_the_late_record_is_refused_for_any_other_state_of_the_pod() -> None:
    pod = one().put("metadata", "resourceVersion", value="7").bound_to("n").view()
    assert records_patch(pod, {"cardquota.io/queue": "q"}) == {
        "metadata": {
            "uid": "uid-ml-p",
            "resourceVersion": "7",
            "annotations": {"cardquota.io/queue": "q"},
        }
    }


QUEUE, CLAIMS = names.CHARGED_QUEUE_ANNOTATION, names.CLAIMS_ANNOTATION
CLASS = "gpu.example.com"


def two_claims() -> PodBuilder:
    """It came with its node: no gate and no bind put anything on record."""
    return a_pod("p").in_queue("q").claim("dev", name="c").claim("more", name="d").bound_to("n")


def recorded(*late: str, **entries: tuple[str, int]) -> str:
    """A record; for those that came on it `late` no quota was asked."""
    written = {
        entry: {"uid": uid}
        | ({"unasked": "true"} if entry in late else {})
        | {f"deviceclass/{CLASS}": str(n)}
        for entry, (uid, n) in entries.items()
    }
    return json.dumps(written, separators=(",", ":"))


ALL = recorded(dev=("uid-ml-c", 1), more=("uid-ml-d", 2))
ALL_LATE = recorded("dev", "more", dev=("uid-ml-c", 1), more=("uid-ml-d", 2))


@pytest.mark.parametrize(
    ("pod", "late"),
    [
        (two_claims(), {QUEUE: "q", CLAIMS: ALL_LATE}),
        (two_claims().phase("Pending"), {QUEUE: "q"}),
        (two_claims().charged("q"), {CLAIMS: ALL_LATE}),
        (two_claims().charged("q").annotation(CLAIMS, ALL), {}),
        (
            two_claims().charged("q").annotation(CLAIMS, recorded(dev=("gone", 8))),
            {CLAIMS: recorded("more", dev=("gone", 8), more=("uid-ml-d", 2))},
        ),
        (two_claims().charged("q").claim("third", name="nowhere"), {CLAIMS: ALL_LATE}),
        (two_claims().charged("q").annotation(CLAIMS, ALL).claim("third", name="nowhere"), {}),
        (two_claims().charged("q").phase("Succeeded"), {}),
        (two_claims().charged("q").gated().put("spec", "nodeName", value=""), {}),
    ],
    ids=[
        "nothing on record",
        "not started",
        "by an earlier version",
        "all on record",
        "one on record",
        "one unknown",
        "one unknown, all others on record",
        "ended",
        "waits",
    ],
)
def test_the_claims_that_a_pod_runs_with_are_put_on_record(pod: PodBuilder, late: dict[str, str]) -> None:
    ledger = books(pod)
    for name, count in (("c", 1), ("d", 2)):
        ledger.devices.put_claim(a_claim(name).exactly("r", CLASS, count=count).view())
    assert late_records(pod.view(), ledger) == late


def test_a_pod_that_came_past_the_gate_keeps_its_gang_with_the_record_of_its_queue() -> None:
    """Else it would be in none from then on, and the others short of one."""
    past = a_pod("p").gpu(1).card("A").in_gang("g", 2, owner="j").bound_to("n")
    gang = past.view().group_key
    assert gang
    assert late_records(past.view(), books(past)) == {QUEUE: "default", names.GANG_OF_ANNOTATION: gang}
    before = past.assigned({"A": 1})
    assert late_records(before.view(), books(before)) == {QUEUE: "default"}, "a version before knew of none"


def test_without_the_feature_no_claim_is_put_on_record() -> None:
    ledger = Ledger(Settings.model_validate({"features": {"dra": False}}))
    ledger.devices.put_claim(a_claim("c").exactly("r", CLASS).view())
    assert late_records(two_claims().view(), ledger) == {QUEUE: "q"}


@pytest.mark.parametrize(("made", "late"), [(1, ()), (2, ()), (3, ("dev",))])
def test_a_claim_that_costs_no_more_than_its_template_was_asked_for_at_the_lift(
    made: int, late: tuple[str, ...]
) -> None:
    """When its pod was let in it was not made yet, and nobody of us saw the bind."""
    let_in = json.dumps({"dev": {f"deviceclass/{CLASS}": "2"}})
    pod = a_pod("p").claim("dev", template="t").generated_claim("dev", "c").bound_to("n")
    pod = pod.charged("q").annotation(CLAIMS, let_in)
    ledger = books(pod)
    ledger.devices.put_claim(a_claim("c").made_for("p").exactly("r", CLASS, count=made).view())
    assert late_records(pod.view(), ledger) == {CLAIMS: recorded(*late, dev=("uid-ml-c", made))}


def test_who_was_let_in_is_left_behind_by_no_move_once_that_is_seen() -> None:
    """Before a scheduler has found a node, too, which may take hours."""
    ledger = books()
    count = 2 * AT_ONCE
    ledger.put_queue(a_queue("q").cards({"A": count}).view())
    ledger.put_namespace(a_namespace().in_queue("q").view())
    for number in range(count):
        ledger.put_pod(a_pod(f"p{number}").card("A").gpu(1).gated().view())
    lifts = [step for step in Planner(ledger).decide("q") if isinstance(step, Lift)]
    assert len(lifts) == count
    for lift in lifts:
        ledger.put_pod(replace(lift.lifted, revision="2", released=1))
    ledger.put_namespace(a_namespace().in_queue("other").view())
    assert ledger.settled
    assert ledger.used("q", "A") == count * 1000
