"""Where a pod stands, by everything that a tenant may write about it: gates, scheduler, grace; and by what he may not."""

from itertools import product

import pytest

from core import names
from core.settings import GateSettings, QuotaSettings, Settings
from core.stage import Stage, Stages
from tests.builders import a_pod
from tests.builders.pods import PodBuilder

OURS, VOLCANO, AFTER, FOREIGN = names.GATE, names.VOLCANO_GATE, "example.com/after", "example.com/licence"
GATES = ((), (OURS,), (FOREIGN,), (OURS, FOREIGN), (FOREIGN, OURS), (OURS, AFTER), (AFTER,), (OURS, VOLCANO))
SCHEDULERS = ("volcano", "default-scheduler", "nobody", "")
RECORDS = ("", names.CHARGED_QUEUE_ANNOTATION, names.ASSIGNED_ANNOTATION, names.LIFTED_ANNOTATION)
GRACES = (None, 0, 30, 120, 121, 10**9)
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
SETTINGS = Settings(
    gates=GateSettings(wait_for_us=(VOLCANO, AFTER)), quota=QuotaSettings(max_free_grace_s=120)
)
STAGES = Stages(SETTINGS)


def with_gates(pod: PodBuilder, *gates: str) -> PodBuilder:
    return pod.put("spec", "schedulingGates", value=[{"name": gate} for gate in gates]) if gates else pod


def asking(gates: tuple[str, ...] = (), scheduler: str = "", record: str = "", phase: str = "") -> PodBuilder:
    pod = with_gates(a_pod().gpu(1).card("A"), *gates)
    pod = pod.scheduler(scheduler) if scheduler else pod
    pod = pod.annotation(record, "x") if record else pod
    return pod.phase(phase) if phase else pod


@pytest.mark.parametrize(("gates", "scheduler", "record"), list(product(GATES, SCHEDULERS, RECORDS)))
def test_an_unbound_pod_holds_quota_by_our_record_or_because_its_scheduler_may_bind_it(
    gates: tuple[str, ...], scheduler: str, record: str
) -> None:
    pod = asking(gates, scheduler, record).view()
    if OURS in gates:
        expected = Stage.WAITING
    elif record or (not gates and scheduler != "nobody"):
        expected = Stage.RESERVED
    else:
        expected = Stage.IGNORED
    assert STAGES.of(pod) is expected
    assert pod.let_in is (record != "" and OURS not in gates)
    assert not STAGES.holds(pod)


@pytest.mark.parametrize(("grace_s", "phase"), list(product(GRACES, PHASES)))
def test_a_deleted_pod_counts_on_when_its_grace_is_long_and_until_it_has_ended(
    grace_s: int | None, phase: str
) -> None:
    pod = asking().bound_to("n", phase=phase).terminating(grace_s=grace_s).view()
    counts = (grace_s or 0) > 120 and phase in ("Pending", "Running")
    assert STAGES.of(pod) is (Stage.ALLOCATED if counts else Stage.IGNORED)
    assert STAGES.holds(pod) is counts


@pytest.mark.parametrize(("grace_s", "phase"), list(product(GRACES, PHASES)))
def test_one_that_runs_on_counts_again_until_it_has_ended(grace_s: int | None, phase: str) -> None:
    stages, pod = Stages(SETTINGS), asking().bound_to("n", phase=phase).terminating(grace_s=grace_s).view()
    assert stages.count_again(pod.uid)
    assert not stages.count_again(pod.uid)
    counts = phase in ("Pending", "Running")
    assert stages.of(pod) is (Stage.ALLOCATED if counts else Stage.IGNORED)
    assert stages.holds(pod) is counts


@pytest.mark.parametrize(("gates", "record", "grace_s"), list(product(GATES, RECORDS, GRACES)))
def test_a_deleted_pod_without_a_node_holds_nothing_whatever_its_grace(
    gates: tuple[str, ...], record: str, grace_s: int | None
) -> None:
    """No API server binds it any more; finalizers may keep it for as long as they like."""
    pod = asking(gates, record=record).terminating(grace_s=grace_s).view()
    assert STAGES.of(pod) is Stage.IGNORED


@pytest.mark.parametrize(("scheduler", "phase"), list(product(SCHEDULERS, PHASES)))
def test_a_bound_pod_counts_whoever_has_bound_it(scheduler: str, phase: str) -> None:
    pod = asking(scheduler=scheduler).bound_to("n", phase=phase).view()
    assert STAGES.of(pod) is (Stage.ALLOCATED if phase in ("Pending", "Running") else Stage.IGNORED)


def test_what_asks_for_nothing_is_counted_only_by_its_node() -> None:
    """Its CPU and memory are a queue's as well, so deleting it is no way round either."""
    bare = a_pod().bound_to("n")
    assert [STAGES.of(pod.view()) for pod in (a_pod(), bare)] == [Stage.IGNORED, Stage.IGNORED]
    assert STAGES.of(with_gates(a_pod(), OURS, FOREIGN).view()) is Stage.WAITING
    graces = [STAGES.holds(bare.terminating(grace_s=grace_s).view()) for grace_s in (30, 10**6)]
    assert (STAGES.holds(bare.view()), graces) == (True, [False, True])


@pytest.mark.parametrize(
    ("gates", "scheduler", "others"),
    [
        ((OURS,), "volcano", ()),
        ((), "volcano", ()),
        ((OURS, FOREIGN), "volcano", (FOREIGN,)),
        ((FOREIGN, OURS, "b"), "nobody", (FOREIGN, "b")),
        ((FOREIGN,), "volcano", (FOREIGN,)),
        ((AFTER, OURS), "default-scheduler", ()),
        ((OURS, VOLCANO), "volcano", ()),
        ((OURS, VOLCANO), "default-scheduler", (VOLCANO,)),
        ((OURS, VOLCANO), "", (VOLCANO,)),
        ((OURS, AFTER, FOREIGN, VOLCANO), "volcano", (FOREIGN,)),
    ],
)
def test_gates_of_others_come_first_save_those_that_wait_for_ours(
    gates: tuple[str, ...], scheduler: str, others: tuple[str, ...]
) -> None:
    """Volcano's own gate is taken away by Volcano's schedulers alone."""
    assert STAGES.other_gates(asking(gates, scheduler).view()) == others


def test_by_default_every_gate_of_others_comes_first() -> None:
    assert Stages(Settings()).other_gates(asking((OURS, VOLCANO), "volcano").view()) == (VOLCANO,)


def test_what_users_write_under_our_prefix_is_no_record() -> None:
    assert not asking(record="cardquota.io/gang-name").view().let_in


def test_the_grace_and_the_deadline_are_read_as_the_api_server_writes_them() -> None:
    pod = asking().bound_to("n").terminating(grace_s=45, deadline="2024-01-02T00:00:00Z").view()
    assert (pod.deleting, pod.grace_s, pod.deadline) == (True, 45, 1704153600 * 10**6)
    assert (asking().view().grace_s, asking().view().deadline) == (0, 0)
    odd = asking().put("metadata", "deletionGracePeriodSeconds", value="a year").terminating(deadline="soon")
    assert (odd.view().deleting, odd.view().grace_s, odd.view().deadline) == (True, 0, 0)
