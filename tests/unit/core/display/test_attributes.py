"""The figures of a queue: what it may use, should have, and uses."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.display.attributes import Attributes, attributes
from core.queues.amounts import Amounts
from core.queues.capacity import Unset, deserved_of, real_capability
from core.queues.usage import GroupUsage, cluster_total
from tests.builders import a_group, a_node, a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.queues.weighing import GI, H200, groups, usage

CLUSTER = {"cpu": 100_000, "memory": 200 * GI}


def figures(
    queue: QueueBuilder,
    *groups: GroupUsage,
    cluster: Amounts = CLUSTER,
    others: Sequence[QueueBuilder] = (),
    unset: Unset = "cluster",
) -> Attributes:
    view = queue.view()
    found = attributes(cluster, [view, *(other.view() for other in others)], {view.name: groups}, unset=unset)
    return found[view.name]


def test_the_real_capability_is_what_the_cluster_has_beyond_all_guarantees_plus_the_own_one() -> None:
    guarantee = {"cpu": 5000, "memory": 10 * GI, "V100": 2000, "AMD-RX-7900-XT": 1000, "H200": 3000}
    assert real_capability(CLUSTER, {}, guarantee) == {
        "cpu": 105_000,
        "memory": 210 * GI,
        "V100": 2000,
        "AMD-RX-7900-XT": 1000,
        "H200": 3000,
    }


def test_guarantees_beyond_the_cluster_leave_the_own_guarantee_and_never_less_than_nothing() -> None:
    real = real_capability({"cpu": 10_000}, {"cpu": 15_000}, {"cpu": 5000})
    assert real == {"cpu": 5000}


def test_the_card_quota_is_capability_guarantee_and_deserved_in_one() -> None:
    found = figures(
        a_queue()
        .cards({"V100": 2, "H200": 0})
        .capability(cpu=50)
        .guarantee(cpu=5, memory="10Gi")
        .deserved(cpu=10),
        cluster={**CLUSTER, "V100": 8000},
        others=[a_queue("other").cards({"V100": 3}).guarantee(cpu=20)],
    )
    assert found.guarantee == {"cpu": 5000, "memory": 10 * GI, "V100": 2000, "H200": 0}
    assert found.real_capability == {"cpu": 80_000, "memory": 200 * GI, "V100": 5000, "H200": 0}
    assert found.capability == {"cpu": 50_000, "memory": 200 * GI, "V100": 2000, "H200": 0}
    assert found.deserved == {"cpu": 10_000, "memory": 10 * GI, "V100": 2000, "H200": 0}


def test_other_resources_of_the_queue_are_dropped() -> None:
    listed = {"cpu": "1", "pods": "10", "nvidia.com/gpu": "4", "ephemeral-storage": "1Gi"}
    queue = a_queue().capability(**listed).guarantee(**listed).deserved(**listed)
    found = figures(queue)
    for amounts in (found.capability, found.guarantee, found.deserved, found.real_capability):
        assert set(amounts) <= {"cpu", "memory"}


@pytest.mark.parametrize(
    ("unset", "queue", "expected"),
    [
        ("cluster", a_queue(), CLUSTER),
        ("zero", a_queue(), {"cpu": 0, "memory": 0}),
        ("cluster", a_queue().capability(cpu=4), {"cpu": 4000, "memory": 200 * GI}),
        ("zero", a_queue().capability(cpu=4), {"cpu": 4000, "memory": 0}),
        ("cluster", a_queue().capability(cpu=0, memory=0), {"cpu": 0, "memory": 0}),
        ("cluster", a_queue().capability(cpu=500), {"cpu": 500_000, "memory": 200 * GI}),
    ],
)
def test_unset_cpu_and_memory_mean_what_the_cluster_has_left_or_nothing(
    unset: Unset, queue: QueueBuilder, expected: Amounts
) -> None:
    assert figures(queue, unset=unset).capability == expected


def test_the_guarantees_of_others_shrink_what_unset_means() -> None:
    found = figures(a_queue(), others=[a_queue("other").guarantee(cpu=60)])
    assert found.capability["cpu"] == 40_000


def test_a_dimension_that_no_node_tells_is_not_limited_unless_the_queue_or_the_settings_say_so() -> None:
    bare = cluster_total([a_node().view()], {})
    assert figures(a_queue(), cluster=bare).capability == {}
    assert figures(a_queue().capability(cpu=4), cluster=bare).capability == {"cpu": 4000}
    assert figures(a_queue(), cluster=bare, unset="zero").capability == {"cpu": 0, "memory": 0}
    assert cluster_total([a_node().allocatable("cpu", 0).view()], {}) == {"cpu": 0}


def test_a_quota_that_cannot_be_read_is_no_quota() -> None:
    found = figures(a_queue().cards('{"V100": "2"}'))
    assert "V100" not in {**found.capability, **found.guarantee, **found.deserved}


@pytest.mark.parametrize(
    ("wanted", "real", "guarantee", "expected"),
    [
        ({"cpu": 10}, {"cpu": 20}, {}, {"cpu": 10}),
        ({"cpu": 30}, {"cpu": 20}, {}, {"cpu": 20}),
        ({"cpu": 1}, {"cpu": 20}, {"cpu": 5}, {"cpu": 5}),
        ({}, {"cpu": 20}, {"cpu": 5}, {"cpu": 5}),
        ({"A": 7}, {"cpu": 20}, {}, {"A": 7}),
    ],
)
def test_deserved_is_what_is_wanted_within_what_is_possible_and_guaranteed(
    wanted: Amounts, real: Amounts, guarantee: Amounts, expected: Amounts
) -> None:
    assert deserved_of(wanted, real, guarantee) == expected


def test_the_cluster_counts_every_node_once_whatever_its_state() -> None:
    nodes = [
        a_node("n1").allocatable("cpu", 4).allocatable("memory", "1Gi").allocatable("pods", 110).view(),
        a_node("n2").allocatable("cpu", "500m").not_ready().cordoned().view(),
    ]
    assert cluster_total(nodes, {"A": 8000}) == {"cpu": 4500, "memory": GI, "A": 8000}


def test_a_running_and_an_inqueue_job_in_one_queue() -> None:
    running = usage(
        a_group("r").phase("Running").min_member(2).min_resources(cpu=4, memory="8Gi").cards({"H200": 4}),
        *[H200.bound_to("n1")] * 3,
    )
    inqueue = usage(
        a_group("i").phase("Inqueue").min_member(2).min_resources(cpu=6, memory="12Gi").cards({"H200": 2}),
        *[H200.phase("Pending")] * 2,
    )
    found = figures(a_queue().cards({"H200": 8}), running, inqueue)
    assert found.allocated == {"cpu": 9000, "memory": 18 * GI, "H200": 3000}
    assert found.request == {"cpu": 15_000, "memory": 30 * GI, "H200": 5000}
    assert found.elastic == {"cpu": 5000, "memory": 10 * GI}
    assert found.inqueue == {"cpu": 6000, "memory": 12 * GI, "H200": 2000}


# -- what always holds -------------------------------------------------------------------------------------------

amount = st.integers(0, 50)
spec = st.fixed_dictionaries({}, optional={"cpu": amount, "memory": amount})
quotas = st.dictionaries(st.sampled_from(["A", "B", "C"]), amount)


@st.composite
def queues(draw: st.DrawFn, name: str) -> QueueBuilder:
    return (
        a_queue(name)
        .cards(draw(quotas))
        .capability(**draw(spec))
        .guarantee(**draw(spec))
        .deserved(**draw(spec))
    )


clusters = st.dictionaries(st.sampled_from(["cpu", "memory", "A", "B"]), st.integers(0, 100_000))


@given(cluster=clusters, one=queues("one"), two=queues("two"))
def test_deserved_lies_between_the_guarantee_and_the_real_capability(
    cluster: dict[str, int], one: QueueBuilder, two: QueueBuilder
) -> None:
    for found in attributes(cluster, [one.view(), two.view()], {}, unset="cluster").values():
        for key, milli in found.deserved.items():
            assert found.guarantee.get(key, 0) <= milli
            assert milli <= found.real_capability.get(key, milli)


@given(cluster=clusters, one=queues("one"), capability=spec, deserved=spec, used=st.lists(groups, max_size=3))
def test_a_further_queue_without_guarantee_changes_nothing_for_the_others(
    cluster: dict[str, int],
    one: QueueBuilder,
    capability: dict[str, int],
    deserved: dict[str, int],
    used: list[GroupUsage],
) -> None:
    further = a_queue("further").capability(**capability).deserved(**deserved)
    alone = attributes(cluster, [one.view()], {"one": used}, unset="cluster")
    both = attributes(cluster, [further.view(), one.view()], {"one": used, "further": used}, unset="cluster")
    assert both["one"] == alone["one"]
