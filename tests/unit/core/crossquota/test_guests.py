"""Which node has GPUs, and which pod is a guest there."""

from typing import Any

import pytest

from core import names
from core.crossquota.guest import enabled, guest, holds_gpu
from core.crossquota.quota import node_quota
from core.settings import parse
from tests.builders.objects import GPU, a_node, a_pod
from tests.builders.pods import PodBuilder
from tests.unit.core.crossquota.ruling import GI, gpu_node, ruled

BOTH = ["cpu", "memory"]


@pytest.mark.parametrize(
    ("pattern", "resource", "found"),
    [
        ("nvidia.com/gpu", "nvidia.com/gpu", True),
        ("nvidia.com/gpu", "nvidia.com/gpu-memory", True),
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", True),
        ("nvidia.com/gpu", "nvidiaXcom/gpu", True),
        ("nvidia.com/gpu", "example.nvidia.com/gpu", True),
        ("^nvidia.com/gpu$", "nvidia.com/gpu-memory", False),
        (r"nvidia\.com/gpu$", "nvidia.com/gpu", True),
        ("amd.com/.*", "nvidia.com/gpu", False),
        ("(?i)GPU", "nvidia.com/gpu", True),
    ],
)
def test_patterns_are_searched_for_and_not_anchored(pattern: str, resource: str, found: bool) -> None:
    assert holds_gpu({resource: 1000}, (pattern,)) is found


def test_any_of_several_patterns_will_do() -> None:
    assert holds_gpu({"amd.com/gpu": 1}, ("nvidia.com", "amd.com"))


@pytest.mark.parametrize(
    ("node", "has"),
    [
        (gpu_node(), True),
        (a_node("cpu").allocatable("cpu", 64), False),
        (gpu_node().allocatable(GPU, 0), False),
        (gpu_node().put("status", value={}), False),
        (gpu_node().put("status", value={"capacity": {GPU: "8"}}), False),
    ],
    ids=[
        "gpus",
        "no GPU resource",
        "device plugin down: 0",
        "nothing allocatable",
        "capacity does not count",
    ],
)
def test_a_gpu_node_has_more_than_nothing_allocatable(node: Any, has: bool) -> None:
    assert (node_quota(node.view(), ruled()) is not None) is has


def cpu_pod(name: str = "p") -> PodBuilder:
    return a_pod(name).request("cpu", 2).request("memory", "4Gi")


@pytest.mark.parametrize(
    ("pod", "is_guest"),
    [
        (cpu_pod(), True),
        (a_pod("p"), True),
        (cpu_pod().gpu(1), False),
        (cpu_pod().gpu(0), True),
        (cpu_pod().init_container("warm", limits={GPU: 1}), False),
        (cpu_pod().limit("nvidia.com/gpu-memory", 4096), False),
        (cpu_pod().claim("gpu", template="one-gpu"), True),
        (cpu_pod().mgpu(core=30, memory=1024), True),
    ],
    ids=[
        "cpu",
        "asks for nothing",
        "GPU",
        "0 GPUs",
        "GPU in init",
        "another match",
        "DRA",
        "no pattern for it",
    ],
)
def test_a_guest_asks_for_no_gpu_resource(pod: PodBuilder, is_guest: bool) -> None:
    assert (guest(pod.view(), ruled()) is not None) is is_guest


def test_without_patterns_there_is_no_rule() -> None:
    for settings in (parse({})[0], ruled(gpuResourceNames=["("]), ruled(gpuResourceNames=" , ")):
        assert not enabled(settings)
        assert guest(cpu_pod().view(), settings) is None
        assert node_quota(gpu_node().view(), settings) is None


def test_the_feature_can_be_switched_off() -> None:
    settings = parse({"features": {"crossQuota": False}, "gpu-resource-names": "nvidia.com/gpu"})[0]
    assert guest(cpu_pod().view(), settings) is None
    assert node_quota(gpu_node().view(), settings) is None


@pytest.mark.parametrize(
    ("pod", "amounts"),
    [
        (cpu_pod(), {"cpu": 2000, "memory": 4 * GI}),
        (a_pod().request("memory", "4Gi"), {"memory": 4 * GI}),
        (a_pod().limit("cpu", 3), {"cpu": 3000}),
        (a_pod().limit("cpu", 3).request("cpu", 1), {"cpu": 1000}),
        (cpu_pod().container("b", requests={"cpu": "500m"}), {"cpu": 2500, "memory": 4 * GI}),
        (cpu_pod().init_container("i", requests={"cpu": 8}), {"cpu": 8000, "memory": 4 * GI}),
        (cpu_pod().init_container("s", requests={"cpu": 1}, sidecar=True), {"cpu": 3000, "memory": 4 * GI}),
        (cpu_pod().put("spec", "overhead", value={"cpu": "250m"}), {"cpu": 2250, "memory": 4 * GI}),
        (
            cpu_pod().put("spec", "resources", value={"requests": {"cpu": "5"}}),
            {"cpu": 5000, "memory": 4 * GI},
        ),
        (a_pod().put("spec", "resources", value={"limits": {"cpu": "6"}}), {"cpu": 6000}),
        (
            a_pod().request("cpu", 1).put("spec", "resources", value={"limits": {"cpu": "6"}}),
            {"cpu": 1000},
        ),
    ],
    ids=[
        "requests",
        "what is not asked for is left out",
        "a limit stands for a missing request",
        "requests, not limits",
        "the sum of the containers",
        "a greedy init container",
        "a sidecar runs beside them",
        "overhead",
        "the pod's own requests win",
        "the pod's own limits stand for missing requests",
        "but those of its containers come first",
    ],
)
def test_what_a_guest_asks_for_is_what_the_scheduler_counts(pod: PodBuilder, amounts: dict[str, int]) -> None:
    found = guest(pod.view(), ruled(quotaResources=BOTH))
    assert found is not None
    assert dict(found.amounts) == amounts


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({"resources": {"requests": {"cpu": "4"}}}, 4000),
        ({"allocatedResources": {"cpu": "3"}}, 3000),
        ({"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "5"}}}, 5000),
        ({"allocatedResources": {"cpu": "1"}}, 2000),
        ({"resources": None, "allocatedResources": "x"}, 2000),
    ],
)
def test_a_resize_that_is_not_done_counts_with_the_larger_amount(status: dict[str, Any], cpu: int) -> None:
    pod = cpu_pod().add("status", "containerStatuses", item={"name": "main", **status})
    found = guest(pod.view(), ruled())
    assert found is not None
    assert found.amounts == {"cpu": cpu}


def test_the_pod_itself_can_be_a_limited_resource() -> None:
    found = guest(a_pod().view(), ruled(quotaResources=["pods"]))
    assert found is not None
    assert found.amounts == {"pods": 1000}


def test_amounts_are_in_the_order_of_the_checks() -> None:
    found = guest(cpu_pod().view(), ruled(quotaResources=["memory", "cpu"]))
    assert found is not None
    assert list(found.amounts) == ["memory", "cpu"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"tier": "batch"}}, True),
        ({"matchLabels": {"tier": "web"}}, False),
        ({"matchLabels": {"tier": "batch", "zone": "a"}}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web", "batch"]}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
        (
            {
                "matchLabels": {"tier": "batch"},
                "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
            },
            False,
        ),
        ("tier=batch", True),
        ({"matchLabels": {"tier": 1}}, True),
    ],
)
def test_only_selected_pods_are_guests(selector: Any, selected: bool) -> None:
    """An unusable selector selects everything, as in Volcano's plugin; the last two are such."""
    from core.crossquota.guest import keys
    from core.objects import pod

    settings = ruled(labelSelector=selector)
    raw = cpu_pod().label("tier", "batch").label("other", "x").build()
    view = pod.project(raw, keys(settings.cross_quota.label_selector))
    assert (guest(view, settings) is not None) is selected
    assert "other" not in view.labels


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        (None, "most-allocated"),
        ("most-allocated", "most-allocated"),
        ("least-allocated", "least-allocated"),
        ("Least-Allocated", "most-allocated"),
        (" least-allocated", "most-allocated"),
        ("", "most-allocated"),
        ("spread", "most-allocated"),
    ],
)
def test_a_strategy_is_read_to_the_letter(text: str | None, strategy: str) -> None:
    pod = cpu_pod()
    if text is not None:
        pod = pod.annotation(names.CROSSQUOTA_STRATEGY_ANNOTATION, text)
    found = guest(pod.view(), ruled())
    assert found is not None
    assert found.strategy == strategy
