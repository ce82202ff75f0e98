"""What pods and their groups weigh in a queue."""

from collections.abc import Mapping

import pytest
from hypothesis import given

from core.queues.usage import GroupUsage, PodUsage, Status, status_of
from core.settings import Settings
from core.stage import Stages
from tests.builders import a_group
from tests.builders.objects import GroupBuilder, PodBuilder
from tests.unit.core.queues.weighing import GI, H200, POD, groups, usage

UNLIMITED = Settings.model_validate({"cards": {"unlimitedCpuMemory": True}})


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (H200.bound_to("n1"), Status.RUNNING),
        (H200.bound_to("n1", phase="Pending"), Status.BOUND),
        (H200.bound_to("n1", phase=""), Status.BOUND),
        (H200.phase("Pending"), Status.PENDING),
        (H200, Status.PENDING),
        (H200.gated(), Status.PENDING),
        (H200.phase("Pending").terminating(), Status.RELEASING),
        (H200.bound_to("n1").terminating(), Status.RELEASING),
        (H200.bound_to("n1").terminating(grace_s=300), Status.RELEASING),
        (H200.bound_to("n1").terminating(grace_s=301), Status.RUNNING),
        (H200.bound_to("n1", phase="Succeeded").terminating(), Status.SUCCEEDED),
        (H200.bound_to("n1", phase="Failed"), Status.FAILED),
        (H200.bound_to("n1", phase="Unknown"), Status.UNKNOWN),
    ],
)
def test_a_pod_has_the_status_that_the_scheduler_gives_it(pod: PodBuilder, expected: Status) -> None:
    assert status_of(pod.view(), Stages(Settings())) is expected
    counted = usage(None, pod)
    assert bool(counted.allocated) is (expected in {Status.RUNNING, Status.BOUND})
    assert bool(counted.request) is (expected in {Status.RUNNING, Status.BOUND, Status.PENDING})


FIVE = GroupUsage("Running", 1, {"cpu": 5000, "memory": 10 * GI}, {"V100": 2000})
TWO = PodUsage(Status.RUNNING, gated=False, cpu_memory={"cpu": 2000, "memory": 4 * GI}, cards={"V100": 1000})
IDLE = PodUsage(Status.PENDING, gated=False, cpu_memory={}, cards={"V100": 1000})
GATED = PodUsage(Status.PENDING, gated=True, cpu_memory={"cpu": 1000}, cards={"V100": 1000})
LEFT = {"cpu": 3000, "memory": 6 * GI, "V100": 1000}


@pytest.mark.parametrize(
    ("phase", "min_member", "pods", "expected"),
    [
        pytest.param("Running", 1, (TWO, IDLE), LEFT, id="what a running group lacks of its minimum"),
        pytest.param("Running", 2, (TWO, IDLE), {}, id="unless fewer members run than it needs"),
        pytest.param("Inqueue", 2, (TWO, IDLE), LEFT, id="what runs already is not promised again"),
        pytest.param("Pending", 1, (TWO, IDLE), {}, id="nothing is promised to a pending group"),
        pytest.param("Completed", 1, (TWO, IDLE), {}, id="nothing is promised to a completed group"),
        pytest.param(
            "Inqueue",
            2,
            (GATED, IDLE),
            {"cpu": 4000, "memory": 10 * GI, "V100": 1000},
            id="what gated pods ask for is not promised",
        ),
        pytest.param(
            "Inqueue",
            2,
            (),
            {"cpu": 5000, "memory": 10 * GI, "V100": 2000},
            id="before there are pods, all that is declared",
        ),
    ],
)
def test_inqueue_is_what_is_promised_and_not_in_use(
    phase: str, min_member: int, pods: tuple[PodUsage, ...], expected: Mapping[str, int]
) -> None:
    assert GroupUsage(phase, min_member, FIVE.cpu_memory, FIVE.card_request, pods).inqueue == expected


def test_a_running_group_without_min_resources_is_promised_nothing() -> None:
    group = a_group().phase("Running").cards({"H200": 4})
    assert usage(group, H200.bound_to("n1"), H200.phase("Pending")).inqueue == {}


def test_declared_cards_stand_until_a_pod_asks_for_cards() -> None:
    group = a_group().phase("Inqueue").cards({"H200|V100": 4})
    assert usage(group).minimum == {"H200|V100": 4000}
    assert usage(group, POD).minimum == {"H200|V100": 4000}
    assert usage(group, POD, H200.gated()).minimum == {"H200": 1000}


def test_finished_pods_do_not_inflate_the_minimum_and_do_not_bring_the_declaration_back() -> None:
    group = a_group().phase("Running").min_resources(cpu=1).cards({"H200": 4})
    ended = H200.bound_to("n1", phase="Succeeded"), H200.bound_to("n1", phase="Failed")
    assert usage(group, *ended, H200.bound_to("n1")).minimum == {"cpu": 1000, "H200": 1000}
    assert usage(group, *ended).minimum == {"cpu": 1000}


def test_declared_cards_that_cannot_be_read_are_none() -> None:
    assert usage(a_group().phase("Inqueue").cards("{")).inqueue == {}


def test_a_pod_without_group_has_nothing_elastic_and_is_promised_nothing() -> None:
    alone = usage(None, H200.bound_to("n1"))
    assert (alone.elastic, alone.inqueue, alone.allocated["cpu"]) == ({}, {}, 3000)


def test_a_bound_pod_stays_counted_when_its_card_has_left_the_cluster() -> None:
    assert usage(None, H200.bound_to("n1"), nodes=()).allocated["H200"] == 1000


def test_a_bound_pod_of_several_cards_counts_on_the_card_of_its_node() -> None:
    pod = H200.card("V100|H200")
    assert usage(None, pod.bound_to("n1")).allocated["H200"] == 1000
    assert usage(None, pod).request["V100|H200"] == 1000


# -- card pods and CPU -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "free"),
    [
        pytest.param(H200, True, id="names a card"),
        pytest.param(POD.gpu(1), True, id="asks for a card's resource without naming the card"),
        pytest.param(POD.limit("nvidia.com/gpu.shared", 1), True, id="the resource of a share"),
        pytest.param(POD.limit("nvidia.com/mig-1g.5gb", 1), True, id="the resource of a slice"),
        pytest.param(POD, False, id="asks for no card"),
        pytest.param(POD.limit("rdma/hca", 1), False, id="another device is no card"),
        pytest.param(POD.mgpu(core=30, memory=1024), False, id="a share of mGPU is no card"),
        pytest.param(POD.card("B300"), False, id="a card that it does not really ask for"),
    ],
)
def test_card_pods_weigh_no_cpu_and_memory_only_where_they_are_free_of_them(
    pod: PodBuilder, free: bool
) -> None:
    limited = usage(None, pod).request
    assert (limited["cpu"], limited["memory"]) == (3000, 6 * GI)
    unlimited = usage(None, pod, settings=UNLIMITED).request
    assert ("cpu" in unlimited, "memory" in unlimited) == (not free, not free)


def test_a_gpu_pod_without_card_name_uses_no_card_quota() -> None:
    assert usage(None, POD.gpu(1).bound_to("n1")).allocated == {"cpu": 3000, "memory": 6 * GI}


@pytest.mark.parametrize(
    ("group", "pods", "free"),
    [
        (a_group().cards({"H200": 1}), (), True),
        (a_group(), (H200,), True),
        (a_group(), (), False),
        (a_group(), (POD,), False),
    ],
)
def test_the_minimum_of_a_group_with_cards_is_free_of_cpu_too(
    group: GroupBuilder, pods: tuple[PodBuilder, ...], free: bool
) -> None:
    group = group.phase("Inqueue").min_resources(cpu=4)
    assert usage(group, *pods).minimum["cpu"] == 4000
    assert ("cpu" in usage(group, *pods, settings=UNLIMITED).minimum) is not free


def test_a_group_whose_minimum_names_a_card_resource_is_free_of_cpu_too() -> None:
    amounts = {"cpu": "4", "nvidia.com/gpu": "1"}
    assert usage(a_group().min_resources(**amounts), settings=UNLIMITED).minimum == {}


def test_with_the_feature_off_nothing_is_a_card() -> None:
    off = Settings.model_validate({"features": {"cards": False}, "cards": {"unlimitedCpuMemory": True}})
    assert usage(a_group().cards({"H200": 1}), H200, settings=off).request == {"cpu": 3000, "memory": 6 * GI}


# -- what always holds -------------------------------------------------------------------------------------------


@given(group=groups)
def test_what_is_promised_and_what_is_used_never_exceed_the_larger_of_minimum_and_use(
    group: GroupUsage,
) -> None:
    allocated, minimum = group.allocated, group.minimum
    for key, promised in group.inqueue.items():
        assert promised > 0
        assert promised + allocated.get(key, 0) <= max(minimum.get(key, 0), allocated.get(key, 0))
    for key, milli in allocated.items():
        assert milli <= group.request[key]
        assert group.elastic.get(key, 0) == max(milli - minimum.get(key, 0), 0)


@given(group=groups)
def test_cards_are_never_elastic_once_pods_ask_for_them(group: GroupUsage) -> None:
    if any(pod.cards for pod in group.pods):
        assert set(group.elastic) <= {"cpu", "memory"}
