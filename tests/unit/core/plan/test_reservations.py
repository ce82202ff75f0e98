"""Pods with quota and without a node: who is due when, whatever comes and goes in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import reasons
from core.objects import raw
from core.plan import reservations as module
from core.plan.reservations import Overdue, Reservations, overdue_notice
from core.settings import ReservationSettings, Settings
from core.stage import Stages
from core.steps import finish
from tests.builders import a_pod
from tests.builders.objects import PodBuilder
from tests.fakes.counted import calls_of

LIFTED = "2024-01-01T00:01:00Z"
SECOND = 10**6
START = raw.timestamp(LIFTED)
POD = a_pod("p").gpu(1).card("A").in_queue("q").owned_by("ReplicaSet", "rs").written_by("cardquota", LIFTED)
WARN = ReservationSettings(warn_after_s=600)
STAGES = Stages(Settings())
EVICT = ReservationSettings(warn_after_s=600, evict_after_s=3600)
BARE = POD.put("metadata", "ownerReferences", value=[])


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
    assert list(late.late()) == []


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
    finish(reservations.restart())
    assert list(reservations.late()) == []
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
    put(reservations, BARE)
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
    reservations = of(BARE, settings=EVICT)
    assert due(reservations, 10**6) == [("p", False)]


def test_one_that_loses_its_owner_is_not_told_twice() -> None:
    reservations = of(POD, settings=EVICT)
    assert due(reservations, 600) == [("p", False)]
    put(reservations, BARE)
    assert reservations.next_due() is None
    assert due(reservations, 3600) == []


@pytest.mark.parametrize(("warn_after_s", "told"), [(600, [("p", False)]), (9000, [])])
def test_one_that_gets_an_owner_is_deleted_at_its_time(
    warn_after_s: int, told: list[tuple[str, bool]]
) -> None:
    reservations = of(BARE, settings=ReservationSettings(warn_after_s=warn_after_s, evict_after_s=3600))
    assert due(reservations, 600) == told
    put(reservations, POD)
    assert reservations.next_due() == at(3600)
    assert due(reservations, 3600) == [("p", True)]


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


Event = tuple[str, int, bool] | str | int


class Model:
    """Who is to be told and deleted when, by plain counting, in seconds."""

    def __init__(self, settings: ReservationSettings) -> None:
        self.settings = settings
        self.pods: dict[str, tuple[int, int, bool]] = {}
        """Since when each has been reserved, since when that is certain, and whether somebody owns it."""
        self.told: set[str] = set()
        self.condemned: set[str] = set()

    def due(self, name: str) -> int | None:
        """When something is to be done about it next."""
        since, seen, owned = self.pods[name]
        warning = [] if name in self.told else [since + self.settings.warn_after_s]
        after_s = self.settings.evict_after_s
        deletion = [seen + after_s] if owned and after_s is not None else []
        return None if name in self.condemned else min(warning + deletion, default=None)

    def take(self, now: int) -> list[tuple[str, bool]]:
        """Those that are due by now, in their order."""
        due = sorted((at, name) for name in self.pods if (at := self.due(name)) is not None and at <= now)
        self.told.update(name for _, name in due)
        evicted = {name for _, name in due if (at := self.due(name)) is not None and at <= now}
        self.condemned |= evicted
        return [(name, name in evicted) for _, name in due]

    def forget(self, name: str) -> None:
        """Nothing has been said or done about it."""
        self.told.discard(name)
        self.condemned.discard(name)


class Both:
    """The model, and what it is a model of."""

    def __init__(self, settings: ReservationSettings) -> None:
        self.now, self.model, self.found = 0, Model(settings), Reservations(settings, STAGES)

    def happen(self, event: Event) -> None:
        """A pod is put, which has been reserved for some seconds, with or without an owner, or is dropped; or time passes."""
        if isinstance(event, int):
            self.now += event
        elif isinstance(event, str):
            self.found.drop_pod(f"uid-ml-{event}")
            self.model.forget(event)
            self.model.pods.pop(event, None)
        else:
            name, ago, owned = event
            since, seen, _ = self.model.pods.get(name, (self.now - ago, self.now, owned))
            self.model.pods[name] = since, seen, owned
            pod = (POD if owned else BARE).put("metadata", "name", value=name).uid(f"uid-ml-{name}").view()
            self.found.put_pod(pod, lambda: ((self.now - ago) * SECOND, self.now * SECOND))

    def take(self) -> None:
        """All that is due is taken."""
        found = [(one.pod.name, one.evict) for one in self.found.take_due(self.now * SECOND)]
        assert found == self.model.take(self.now)
        assert {pod.name for pod in self.found.late()} == self.model.told
        pending = [at for name in self.model.pods if (at := self.model.due(name)) is not None]
        assert self.found.next_due() == (min(pending) * SECOND if pending else None)

    def begin(self, meanwhile: list[list[Event]], *, cut_short: bool) -> None:
        """A term begins, at each pause something happens; where it is over before it has begun another one follows."""
        steps = self.found.restart()
        for events in meanwhile:
            if next(steps, steps) is steps:
                break
            assert not any(self.found.condemned(f"uid-ml-{name}") for name in "abcd")
            for event in events:
                self.happen(event)
        if cut_short:
            steps.close()
            steps = self.found.restart()
        finish(steps)
        for name in self.model.pods:
            self.model.forget(name)


NAMES = st.sampled_from("abcd")
EVENTS = st.lists(
    st.tuples(NAMES, st.integers(0, 20), st.booleans()) | NAMES | st.integers(0, 15), max_size=15
)
TERM = st.tuples(EVENTS, st.lists(EVENTS, max_size=6), st.booleans())


@given(st.lists(TERM, max_size=5), st.sampled_from([(10, 20), (20, 10), (10, 10), (10, None)]))
def test_each_pod_is_due_at_its_times_once_a_term_and_at_no_other(
    terms: list[tuple[list[Event], list[list[Event]], bool]], settings: tuple[int, int | None]
) -> None:
    """Whatever happens while it lasts, and while the next one begins. What is put again counts from the first time."""
    both = Both(ReservationSettings(warn_after_s=settings[0], evict_after_s=settings[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RESTARTED_IN_A_STEP", 1)
        for events, meanwhile, cut_short in terms:
            both.take()
            for event in events:
                both.happen(event)
                both.take()
            both.begin(meanwhile, cut_short=cut_short)
    both.take()


def test_what_pods_leave_behind_is_bounded_by_those_that_are_there() -> None:
    """Thousands are lifted and bound within the time after which they would be late."""
    reservations = Reservations(EVICT, STAGES)
    for number in range(5000):
        put(reservations, POD.uid(f"u{number}"))
        if number % 10 == 0:
            due(reservations, 3600)
        if number >= 10:
            reservations.drop_pod(f"u{number - 10}")
    assert len(reservations._order) <= 10
    assert len(reservations._condemned) <= 10
    assert len(reservations._due) <= 10


def test_very_many_that_go_leave_nothing_to_be_passed_by() -> None:
    """All but the first go, and then that one too: what comes next costs the same as ever."""

    def cost(count: int) -> int:
        reservations = of(*(POD.uid(f"u{number:04}") for number in range(count)))
        for number in reversed(range(count)):
            reservations.drop_pod(f"u{number:04}")
        return calls_of(reservations.next_due)

    assert cost(1000) == cost(10)


def test_late_ones_may_come_and_go_while_they_are_gone_through() -> None:
    reservations = of(*(POD.uid(uid) for uid in "abcd"))
    assert len(due(reservations, 600)) == 4
    found = reservations.late()
    left = {"a", "b", "c", "d"} - {next(found).uid}
    reservations.drop_pod(left.pop())
    put(reservations, POD.uid("new"))
    assert len(due(reservations, 600)) == 1
    assert {pod.uid for pod in found} == left
