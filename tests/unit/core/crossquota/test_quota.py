"""What a node allows: five sources, the first that is there counts."""

from fractions import Fraction
from typing import Any

import pytest

from tests.unit.core.crossquota.ruling import GI, gpu_node, quota_of, ruled

ABSOLUTE = "volcano.sh/crossquota-cpu"
PERCENTAGE = "volcano.sh/crossquota-percentage-cpu"
ALL = {"quota": {"cpu": "30"}, "quotaPercentage": {"cpu": "25"}}


@pytest.mark.parametrize(
    ("annotations", "section", "milli"),
    [
        ({ABSOLUTE: "10", PERCENTAGE: "50"}, ALL, 10_000),
        ({PERCENTAGE: "50"}, ALL, 32_000),
        ({}, ALL, 30_000),
        ({}, {"quotaPercentage": {"cpu": "25"}}, 16_000),
        ({}, {}, 64_000),
        ({ABSOLUTE: " ", PERCENTAGE: "50"}, ALL, 32_000),
        ({ABSOLUTE: "", PERCENTAGE: ""}, ALL, 30_000),
        ({ABSOLUTE: "200"}, {}, 200_000),
        ({ABSOLUTE: "0"}, ALL, 0),
        ({ABSOLUTE: " 10 "}, ALL, 10_000),
    ],
    ids=[
        "the node's amount",
        "the node's percentage",
        "the settings' amount",
        "the settings' percentage",
        "all of the node",
        "a blank annotation is none",
        "two blank ones neither",
        "more than the node has is not cut",
        "nothing at all",
        "surrounding blanks",
    ],
)
def test_the_first_source_counts(annotations: dict[str, str], section: dict[str, Any], milli: int) -> None:
    node = gpu_node()
    for key, text in annotations.items():
        node = node.annotation(key, text)
    assert quota_of(node, ruled(**section))["cpu"] == milli


@pytest.mark.parametrize("text", ["abc", "-1", "1,5", "10 cores", "1e", "NaN", "--"])
def test_a_bad_amount_on_a_node_is_nothing_and_does_not_fall_through(text: str) -> None:
    assert (
        quota_of(gpu_node().annotation(ABSOLUTE, text).annotation(PERCENTAGE, "50"), ruled(**ALL))["cpu"] == 0
    )


@pytest.mark.parametrize("text", ["0", "-5", "101", "100.01", "50%", "half", "nan", "inf", "1_0", "0x10"])
def test_a_bad_percentage_on_a_node_is_nothing_and_does_not_fall_through(text: str) -> None:
    assert quota_of(gpu_node().annotation(PERCENTAGE, text), ruled(**ALL))["cpu"] == 0


@pytest.mark.parametrize("text", ["0", "-5", "101", "50%", "nan", "inf", "1_0", True, None, float("nan")])
def test_a_bad_percentage_in_the_settings_falls_through(text: Any) -> None:
    assert quota_of(gpu_node(), ruled(quotaPercentage={"cpu": text}))["cpu"] == 64_000


@pytest.mark.parametrize("text", ["x", "-1", -1, None, [], True])
def test_a_bad_amount_in_the_settings_falls_through(text: Any) -> None:
    assert quota_of(gpu_node(), ruled(quota={"cpu": text}, quotaPercentage={"cpu": 25}))["cpu"] == 16_000


def test_percentages_are_exact_and_of_what_is_allocatable() -> None:
    node = gpu_node(cpu="63999m").put("status", "capacity", value={"cpu": "128"})
    quota = quota_of(node.annotation(PERCENTAGE, "33.3"), ruled())
    assert quota["cpu"] == Fraction(63999 * 333, 1000)


def test_each_resource_has_a_source_of_its_own_in_the_order_of_the_checks() -> None:
    settings = ruled(quotaResources="memory, cpu, nvidia.com/net", quota={"memory": "8Gi"})
    quota = quota_of(gpu_node().annotation(ABSOLUTE, "4"), settings)
    assert quota == {"memory": 8 * GI, "cpu": 4000, "nvidia.com/net": 0}
    assert list(quota) == ["memory", "cpu", "nvidia.com/net"]


def test_a_resource_with_a_slash_is_limited_by_settings_alone() -> None:
    node = gpu_node().allocatable("example.com/foo", 10)
    settings = ruled(quotaResources=["example.com/foo"], quotaPercentage={"example.com/foo": 50})
    assert quota_of(node, settings) == {"example.com/foo": 5000}


def test_names_keep_their_case() -> None:
    node = gpu_node().annotation("volcano.sh/crossquota-hugepages-1Gi", "2Gi")
    assert quota_of(node, ruled(quotaResources=["hugepages-1Gi"])) == {"hugepages-1Gi": 2 * GI}
