"""An audit of the books: silent about sound ones, and it names every place that is wrong."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from core import names
from core.objects import Pod
from core.queues.audit import audit
from core.queues.backlog import AT_ONCE
from core.queues.drift import Drift
from core.queues.ledger import Ledger
from core.settings import Settings
from core.sharded import WHOLE, Sharded
from core.stage import Stage
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.pods import PodBuilder
from tests.fakes.counted import longest_step

PODS = (
    a_pod("runs").gpu(2).card("A").in_queue("q").assigned({"A": 2}).bound_to("n").view(),
    a_pod("lifted").gpu(1).card("A").in_queue("q").assigned({"A": 1}).view(),
    a_pod("waits").gpu(4).card("A").in_queue("q").gated().view(),
    a_pod("cpu").bound_to("n").view(),
)


def by_key(pods: Iterable[Pod]) -> dict[str, Pod]:
    return {pod.key: pod for pod in pods}


def books() -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 8}).view())
    for pod in PODS:
        ledger.put_pod(pod)
    return ledger


def found(ledger: Ledger, pods: tuple[Pod, ...] = PODS) -> list[str]:
    return [str(drift) for drift in finish(audit(ledger, by_key(pods)))]


def test_sound_books_are_passed_in_silence() -> None:
    ledger = books()
    assert found(ledger) == []
    ledger.assume(replace(PODS[2], gates=()))
    assert found(ledger) == []


@pytest.mark.parametrize("part", ["allocated", "reserved", "waiting"])
def test_a_sum_that_went_astray(part: str) -> None:
    ledger = books()
    getattr(ledger.accounts["q"], part)["A"] += 1500
    before = {"allocated": "2", "reserved": "1", "waiting": "4"}[part]
    after = {"allocated": "3.5", "reserved": "2.5", "waiting": "5.5"}[part]
    assert found(ledger) == [f"Queue q, A {part}: {after} in the books, {before} found"]


def test_a_sum_of_nobody() -> None:
    ledger = books()
    ledger.accounts["q"].allocated["B"] = 1000
    assert finish(audit(ledger, by_key(PODS))) == [Drift("sum", "Queue q, B allocated", "1", "0")]


def test_a_pod_that_is_booked_as_it_was() -> None:
    """A change of what decides about it was forgotten. A pod with a record is charged by that."""
    ledger = books()
    ledger.inventory.drop("n")
    ledger.inventory.put(a_node("n").card("A", 8, prefix="example.com/a").view())
    assert [drift.partition(":")[0] for drift in found(ledger)] == ["Pod ml/waits"]


def left_behind(ledger: Ledger) -> tuple[Pod, ...]:
    """So many members of a PodGroup that they are not booked anew at once."""
    crowd = a_pod("p").gpu(1).card("A").in_group("g").gated().view()
    members = tuple(replace(crowd, name=f"p{number}", uid=f"uid-{number}") for number in range(AT_ONCE + 1))
    for pod in members:
        ledger.put_pod(pod)
    ledger.put_group(a_group("g").in_queue("q").view())
    assert not ledger.settled
    return members


def test_who_is_left_behind_hides_nobody_else() -> None:
    """Whoever moves thousands of pods all the time would have the audit find nothing."""
    ledger = books()
    members = left_behind(ledger)
    ledger.inventory.drop("n")
    ledger.inventory.put(a_node("n").card("A", 8, prefix="example.com/a").view())
    assert [drift.partition(":")[0] for drift in found(ledger, (*PODS, *members))] == ["Pod ml/waits"]


def test_a_pod_that_was_missed_when_it_went() -> None:
    ledger = books()
    assert found(ledger, PODS[1:]) == [
        "Pod ml/runs: 2 A allocated in queue q in the books, no such pod found"
    ]


def test_an_entry_that_was_lost() -> None:
    ledger = books()
    entry = ledger.entry(PODS[2].uid)
    assert entry is not None
    ledger._entries.replace(entry, None)
    assert found(ledger) == ["Pod ml/waits: nothing in the books, 4 A waiting in queue q found"]


def test_what_changes_meanwhile_is_no_drift() -> None:
    ledger = books()
    more = [a_pod(f"m{number}").gpu(1).card("A").in_queue("q").gated().view() for number in range(200)]
    for pod in more:
        ledger.put_pod(pod)
    steps = audit(ledger, by_key([*PODS, *more]))
    for pod in more[:3]:
        next(steps)
        ledger.drop_pod(pod.uid)
        ledger.put_pod(replace(more[-1], deleting=True))
    assert finish(steps) == []


def test_a_sum_of_a_queue_with_pods_below_it_alone() -> None:
    ledger = Ledger(Settings.model_validate({"cards": {"hierarchy": True}}))
    ledger.put_queue(a_queue("top").cards({"A": 8}).view())
    ledger.put_queue(a_queue("q").child_of("top").cards({"A": 8}).view())
    ledger.put_pod(PODS[0])
    assert ledger.subtrees is not None
    below = ledger.subtrees.below("top").allocated
    below["A"] += 1000
    assert found(ledger, PODS[:1]) == ["Queue top, A allocated: 3 in the books, 2 found"]


def test_the_sums_of_a_queue_that_were_lost_are_named_once() -> None:
    ledger = books()
    del ledger._entries.accounts["q"]
    ledger.drop_queue("q")
    assert found(ledger) == [
        "Queue q, A allocated: 0 in the books, 2 found",
        "Queue q, A reserved: 0 in the books, 1 found",
        "Queue q, A waiting: 0 in the books, 4 found",
    ]


def test_a_pod_that_was_missed_when_another_took_its_name() -> None:
    ledger = books()
    again = replace(PODS[1], uid="another")
    ledger.put_pod(again)
    assert found(ledger, (PODS[0], again, *PODS[2:])) == [
        "Pod ml/lifted: 1 A reserved in queue q in the books, no such pod found"
    ]


def many_waiting(ledger: Ledger, queue: str) -> list[PodBuilder]:
    """So many that an audit pauses while it counts them."""
    pods = [a_pod(f"m{number}").gpu(1).card("A").in_queue(queue) for number in range(200)]
    for pod in pods:
        ledger.put_pod(pod.gated().view())
    return pods


def test_who_is_let_in_after_he_was_counted_is_no_drift() -> None:
    ledger = books()
    more = many_waiting(ledger, "q")
    steps = audit(ledger, by_key([*PODS, *(pod.gated().view() for pod in more)]))
    for pod in (more[0], more[-1]):
        next(steps)
        ledger.let_in(pod.charged("q").assigned({"A": 1}).view())
    assert finish(steps) == []


def test_where_queues_move_in_the_middle_sums_are_left_to_the_next_audit() -> None:
    ledger = Ledger(Settings.model_validate({"cards": {"hierarchy": True}}))
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("top").cards({"A": 8}).view())
    ledger.put_queue(a_queue("q").cards({"A": 8}).view())
    shown = by_key(pod.gated().view() for pod in many_waiting(ledger, "q"))
    ledger.accounts["q"].waiting["A"] += 1000
    steps = audit(ledger, shown)
    next(steps)
    ledger.put_queue(a_queue("q").child_of("top").cards({"A": 8}).view())
    assert finish(steps) == []
    assert [drift.found for drift in finish(audit(ledger, shown))] == ["200"] * 2


@pytest.mark.parametrize("own_queues", [False, True])
def test_no_step_of_an_audit_grows_with_the_cluster(own_queues: bool) -> None:
    """Not with the pods, and not with the queues that they name."""
    ledger = books()
    shown = Sharded[Pod]()
    for number in range(2 * WHOLE):
        pod = (
            a_pod(f"m{number}").gpu(1).card("A").in_queue(f"q{number}" if own_queues else "q").gated().view()
        )
        ledger.put_pod(pod)
        shown.add(pod.key, pod)
    for pod in PODS:
        shown.add(pod.key, pod)
    assert longest_step(audit(ledger, shown)) < 2000


# -- devices ---------------------------------------------------------------------------------------------------

GPU = "deviceclass/gpu"
SHARED = tuple(
    a_pod(name).in_queue("below").claim("dev", name="c").bound_to("n").view() for name in ("one", "two")
)
HELD = a_pod("held").in_queue("below").claim("dev", name="other").gated().view()
DEVICES = (*SHARED, HELD)


def with_devices() -> Ledger:
    """Two pods share a claim of two devices in a queue below another; a third waits for one of three."""
    ledger = books()
    ledger.put_queue(a_queue("below").child_of("q").view())
    ledger.devices.put_claim(a_claim("c").exactly("r", "gpu", count=2).view())
    ledger.devices.put_claim(a_claim("other").exactly("r", "gpu", count=3).view())
    for pod in DEVICES:
        ledger.put_pod(pod)
    return ledger


def test_sound_books_of_devices_are_passed_in_silence_and_a_shared_claim_counts_once() -> None:
    ledger = with_devices()
    assert (ledger.devices.allocated("q"), ledger.devices.waiting("q")) == ({GPU: 2000}, {GPU: 3000})
    assert found(ledger, (*PODS, *DEVICES)) == []
    ledger.devices.drop_claim("ml/other")
    ledger.drop_pod(SHARED[0].uid)
    assert found(ledger, (*PODS, *DEVICES[1:])) == []


def test_a_sum_of_devices_that_went_astray_is_named_in_each_queue_that_has_it() -> None:
    ledger = with_devices()
    sums = ledger.devices.book.accounts.of("q").allocated.sums
    (key,) = sums
    sums[key] += 10**9
    assert found(ledger, (*PODS, *DEVICES)) == [f"Queue q, {GPU} allocated: 3 in the books, 2 found"]


def test_a_claim_whose_change_was_missed() -> None:
    ledger = with_devices()
    book = ledger.devices.book
    book._known.claims["ml/other"] = book._known.claims["ml/c"]
    assert found(ledger, (*PODS, *DEVICES)) == [
        f"Pod ml/held: 3 {GPU} waiting in queue below in the books, 2 {GPU} waiting in queue below found"
    ]


def test_who_is_left_behind_hides_the_devices_of_nobody_else() -> None:
    ledger = with_devices()
    members = left_behind(ledger)
    book = ledger.devices.book
    book._known.claims["ml/other"] = book._known.claims["ml/c"]
    drifts = found(ledger, (*PODS, *DEVICES, *members))
    assert [drift.partition(":")[0] for drift in drifts] == ["Pod ml/held"]


def test_a_booking_of_devices_that_was_lost_and_one_of_a_pod_that_is_gone() -> None:
    ledger = with_devices()
    ledger.devices.drop_pod(HELD.uid)
    gone = a_pod("gone").in_queue("q").claim("dev", name="other").bound_to("n").view()
    ledger.devices.put_pod(gone, Stage.ALLOCATED, "q")
    assert sorted(found(ledger, (*PODS, *DEVICES))) == [
        f"Pod ml/gone: 3 {GPU} (unasked) allocated in queue q in the books, no such pod found",
        f"Pod ml/held: no device in the books, 3 {GPU} waiting in queue below found",
    ]


def test_a_booking_of_devices_that_is_wrong_about_whether_quota_was_asked_for_its_claim() -> None:
    """Whoever shares the claim would have it for nothing."""
    ledger = with_devices()
    book = ledger.devices.book
    booking = book.booked(SHARED[0].uid)
    assert booking is not None
    assert booking.wants.unasked == {"ml/c"}
    book._bookings.replace([booking], [replace(booking, wants=replace(booking.wants, unasked=frozenset()))])
    assert found(ledger, (*PODS, *DEVICES)) == [
        f"Pod ml/one: 2 {GPU} allocated in queue below in the books, 2 {GPU} (unasked) allocated in queue below found"
    ]


def test_a_booking_of_devices_that_missed_that_its_pod_was_let_in() -> None:
    ledger = with_devices()
    book = ledger.devices.book
    record = json.dumps({"dev": {"uid": "uid-ml-other", GPU: "3"}})
    lifted = a_pod("held").in_queue("below").charged("below").claim("dev", name="other")
    ledger.put_pod(lifted.annotation(names.CLAIMS_ANNOTATION, record).view())
    booking = book.booked(HELD.uid)
    assert booking is not None
    book._bookings.replace([booking], [replace(booking, pod=replace(HELD, gates=()))])
    assert found(ledger, (*PODS, *DEVICES)) == [
        f"Pod ml/held: 3 {GPU} (not granted) reserved in queue below in the books, 3 {GPU} reserved in queue below found"
    ]
