"""Pods with quota and without a node: who is due when, whatever comes and goes in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import reasons
from core.objects import raw
from core.plan.reservations import Overdue, Reservations, overdue_notice
from core.settings import ReservationSettings, Settings
from core.stage import Stages
from tests.builders import a_pod
from tests.builders.objects import PodBuilder

LIFTED = "2024-01-01T00:01:00Z"
SECOND = 10**6
START = raw.timestamp(LIFTED)
POD = a_pod("p").gpu(1).card("A").in_queue("q").owned_by("ReplicaSet", "rs").written_by("cardquota", LIFTED)
WARN = ReservationSettings(warn_after_s=600)
STAGES = Stages(Settings())
EVICT = ReservationSettings(warn_after_s=600, evict_after_s=3600)


def at(seconds: int) -> int:
    """So many seconds after the lift."""
    return START + seconds * SECOND


def put(reservations: Reservations, pod: PodBuilder) -> None:
    """As one who saw it when it was lifted."""
    view = pod.view()
    reservations.put_pod(view, lambda: (view.released, view.released))


def of(*pods: PodBuilder, settings: ReservationSettings = WARN) -> Reservations:
    made = Reservations(settings, STAGES)
    for pod in pods:
        put(made, pod)
    return made


def due(reservations: Reservations, seconds: int) -> list[tuple[str, bool]]:
    return [(one.pod.name, one.evict) for one in reservations.take_due(at(seconds))]


def test_a_pod_is_late_once_when_its_time_is_over() -> None:
    reservations = of(POD)
    assert reservations.next_due() == at(600)
    assert due(reservations, 599) == []
    assert due(reservations, 600) == [("p", False)]
    assert due(reservations, 10**6) == []
    assert reservations.next_due() is None
    assert [pod.name for pod in reservations.late()] == ["p"]


def test_other_writes_to_the_pod_do_not_begin_its_time_anew() -> None:
    reservations = of(POD)
    put(reservations, POD.put("metadata", "resourceVersion", value="2"))
    assert due(reservations, 600) == [("p", False)]
    put(reservations, POD.put("metadata", "resourceVersion", value="3"))
    assert due(reservations, 601) == []


@pytest.mark.parametrize(
    "after",
    [POD.bound_to("n"), POD.terminating(), POD.phase("Failed"), POD.gated()],
    ids=["bound", "terminating", "ended", "gated"],
)
def test_a_pod_that_is_not_reserved_any_more_is_never_late(after: PodBuilder) -> None:
    reservations = of(POD)
    put(reservations, after)
    assert due(reservations, 10**6) == []
    late = of(POD)
    assert due(late, 600) == [("p", False)]
    put(late, after)
    assert late.late() == []


@pytest.mark.parametrize(
    "pod",
    [a_pod("cpu").limit("cpu", 4), POD.gated(), POD.bound_to("n"), POD.put("metadata", value={"name": "p"})],
    ids=["asks for nothing", "gated", "bound", "without any time"],
)
def test_who_is_not_reserved_is_not_kept(pod: PodBuilder) -> None:
    assert of(pod).next_due() is None


def test_a_new_leader_goes_on_where_the_other_one_stopped() -> None:
    """The times are those of the pods; what was said is said again, what was not is not forgotten."""
    reservations = of(POD, settings=EVICT)
    assert due(reservations, 700) == [("p", False)]
    reservations.restart()
    assert reservations.late() == []
    assert due(reservations, 701) == [("p", False)]
    assert due(of(POD, settings=EVICT), 3600) == [("p", True)]


@pytest.mark.parametrize(
    "write",
    [
        POD.written_by("cardquota", "2024-01-01T00:09:00Z"),
        POD.put("metadata", "managedFields", value=[]),
        POD.put("metadata", "managedFields", value=[]).written_by("anybody", "2024-01-01T00:09:00Z"),
    ],
    ids=["under our name", "history wiped", "history wiped and written"],
)
def test_who_may_write_a_pod_does_not_put_its_time_off(write: PodBuilder) -> None:
    """The name of the manager is the client's to choose, and so is whether the history is kept."""
    reservations = of(POD, settings=EVICT)
    put(reservations, write)
    assert due(reservations, 600) == [("p", False)]
    put(reservations, POD)
    put(reservations, write)
    assert due(reservations, 3600) == [("p", True)]
    assert reservations.condemned("uid-ml-p") is not None


def test_a_pod_is_to_be_deleted_until_it_is_gone() -> None:
    reservations = of(POD, settings=EVICT)
    assert due(reservations, 600) == [("p", False)]
    assert due(reservations, 3599) == []
    assert reservations.condemned("uid-ml-p") is None
    assert due(reservations, 3600) == [("p", True)]
    assert due(reservations, 10**6) == []
    later = POD.put("metadata", "resourceVersion", value="8")
    put(reservations, later)
    assert reservations.condemned("uid-ml-p") == later.view()
    put(reservations, POD.put("metadata", "ownerReferences", value=[]))
    assert reservations.condemned("uid-ml-p") is None
    put(reservations, POD)
    assert reservations.condemned("uid-ml-p") == POD.view()
    put(reservations, POD.terminating())
    assert reservations.condemned("uid-ml-p") is None
    assert due(reservations, 10**6) == []


def test_only_the_time_that_is_certain_counts_towards_a_deletion() -> None:
    """By the API server's times it has been reserved for a day; it has been seen for no more than an hour."""
    reservations, pod = Reservations(EVICT, STAGES), POD.view()
    reservations.put_pod(pod, lambda: (at(0) - 86_400 * SECOND, at(0)))
    reservations.put_pod(pod, lambda: (at(0) - 10**9 * SECOND, at(0) - 10**9 * SECOND))
    assert due(reservations, 0) == [("p", False)]
    assert due(reservations, 3599) == []
    assert due(reservations, 3600) == [("p", True)]


def test_nobody_is_deleted_whom_nobody_would_create_anew() -> None:
    bare = POD.put("metadata", "ownerReferences", value=[])
    reservations = of(bare, settings=EVICT)
    assert due(reservations, 10**6) == [("p", False)]


def test_a_deletion_may_come_before_the_warning() -> None:
    reservations = of(POD, settings=ReservationSettings(warn_after_s=600, evict_after_s=60))
    assert due(reservations, 60) == [("p", True)]


def test_the_words_name_the_queue_and_the_time_of_the_lift() -> None:
    pod = POD.view()
    assert overdue_notice(Overdue(pod, evict=False), "q", EVICT) == (
        reasons.RESERVED_TOO_LONG,
        "Queue <q>: the pod has had quota since 2024-01-01T00:01:00Z and no node for more than 600 s",
    )
    assert overdue_notice(Overdue(pod, evict=True), "q", EVICT) == (
        reasons.RESERVATION_EVICTED,
        (
            "Queue <q>: deleted, for it had quota since 2024-01-01T00:01:00Z and no node for more than 3600 s; "
            "what its owner creates instead waits for quota anew"
        ),
    )


def test_a_time_that_nobody_can_have_meant_is_no_error() -> None:
    pod = POD.written_by("cardquota", "9999-12-31T23:59:59-23:00").view()
    _, note = overdue_notice(Overdue(pod, evict=False), "q", WARN)
    assert "since 9999-01-01T00:00:00Z" in note


def test_the_words_name_gates_of_others() -> None:
    pod = POD.put("spec", "schedulingGates", value=[{"name": "example.com/licence"}]).view()
    _, note = overdue_notice(Overdue(pod, evict=False), "q", WARN)
    assert note.endswith("; scheduling gates of others are left: example.com/licence")


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(1, 50), st.booleans()) | st.integers(0, 20),
        min_size=20,
    )
)
def test_each_pod_is_due_at_its_time_and_at_no_other(steps: list[tuple[str, int, bool] | int]) -> None:
    """A number lets time pass; the others put a pod that was lifted at a second, or drop it. Checked by plain counting.

    What is put again counts from the first time, whatever it says by then.
    """
    reservations, now = Reservations(ReservationSettings(warn_after_s=10), STAGES), 0
    lifted: dict[str, int] = {}
    said: set[str] = set()
    for step in steps:
        if isinstance(step, int):
            now += step
            expected = {name for name, second in lifted.items() if second + 10 <= now} - said
            assert {one.pod.name for one in reservations.take_due(now * SECOND)} == expected
            said |= expected
        elif step[2]:
            name, second, _ = step
            pod = a_pod(name).gpu(1).card("A").written_by("cardquota", f"1970-01-01T00:00:{second:02}Z")
            put(reservations, pod)
            lifted.setdefault(name, second)
        else:
            reservations.drop_pod(f"uid-ml-{step[0]}")
            lifted.pop(step[0], None)
            said.discard(step[0])
        pending = [second + 10 for name, second in lifted.items() if name not in said]
        assert reservations.next_due() == (min(pending) * SECOND if pending else None)
        assert {pod.name for pod in reservations.late()} == said


def test_what_pods_leave_behind_is_bounded_by_those_that_are_there() -> None:
    """Thousands are lifted and bound within the time after which they would be late."""
    reservations = Reservations(EVICT, STAGES)
    for number in range(5000):
        put(reservations, POD.uid(f"u{number}"))
        if number % 10 == 0:
            due(reservations, 3600)
        if number >= 10:
            reservations.drop_pod(f"u{number - 10}")
    assert len(reservations._heap) < 100
    assert len(reservations._condemned) <= 10
