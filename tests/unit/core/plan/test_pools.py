"""Cards of node pools that may have no nodes: pods are let in by quota alone, and led to the pool until a node shows the card."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.core.plan.lifting import held, lifted, one

POOL, OTHER = {"example.com/pool": "h200"}, {"example.com/pool": "a100"}
RESOURCE = "nvidia.com/gpu"
SETTINGS = Settings.model_validate(
    {
        "cards": {
            "pools": {
                "H200": {"labels": POOL, "resource": RESOURCE},
                "A100": {"labels": OTHER, "resource": RESOURCE},
            }
        }
    }
)
FRESH = a_node("fresh").label("example.com/pool", "h200").allocatable(RESOURCE, 2)
"""A node of the pool that the labeller has not come to."""


def books(*nodes: NodeBuilder, quota: Mapping[str, int] | None = None) -> Ledger:
    ledger = Ledger(SETTINGS)
    for node in nodes:
        ledger.put_node(node.view())
    ledger.put_queue(a_queue("q").cards(quota or {"H200": 3, "A100": 1, "B": 8, "NONE": 8}).view())
    return ledger


def decide(ledger: Ledger, *pods: PodBuilder) -> dict[str, Lift | Hold]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: decision for decision in Planner(ledger).decide("q")}


def led_to(decision: Lift | Hold) -> list[dict[str, Any]]:
    """The expressions that the lift adds."""
    assert isinstance(decision, Lift)
    return [
        {"key": each.key, "values": list(each.values)}
        for alternative in decision.requirement.alternatives
        for each in alternative
    ]


def test_without_any_node_pods_are_lifted_up_to_the_quota_and_led_to_the_pool() -> None:
    decisions = decide(books(), *(one(f"p{i}", "H200", second=i) for i in range(5)))
    assert lifted(decisions) == ["p0", "p1", "p2"]
    assert led_to(decisions["p0"]) == [{"key": "example.com/pool", "values": ["h200"]}]
    assert held(decisions["p3"]).why.code == reasons.INSUFFICIENT_SCALAR_QUOTA


def test_a_card_without_node_and_pool_waits() -> None:
    ledger = Ledger(Settings.model_validate({"cards": {"resources": {"NONE": RESOURCE}}}))
    ledger.put_queue(a_queue("q").cards({"NONE": 1}).view())
    assert held(decide(ledger, one("p", "NONE"))["p"]).why.code == reasons.NO_FREE_CARD


def test_as_soon_as_a_node_shows_the_card_pods_are_led_to_the_product() -> None:
    ledger = books(FRESH)
    assert led_to(decide(ledger, one("first", "H200"))["first"])[0]["key"] == "example.com/pool"
    ledger.put_node(FRESH.card("H200", 2).view())
    assert led_to(decide(ledger, one("second", "H200", second=1))["second"]) == [
        {"key": "nvidia.com/gpu.product", "values": ["H200"]}
    ]
    ledger.drop_node("fresh")
    assert led_to(decide(ledger, one("third", "H200", second=2))["third"])[0]["key"] == "example.com/pool"


@pytest.mark.parametrize(
    ("cards", "quota", "assigned"),
    [
        ("B|H200", {"B": 8, "H200": 1}, "B"),
        ("H200|B", {"B": 8, "H200": 1}, "H200"),
        ("H200|B", {"B": 8, "H200": 0}, "B"),
        ("NONE|H200", {"NONE": 8, "H200": 1}, "H200"),
        ("NONE|H200|A100", {"NONE": 8, "A100": 1}, "A100"),
    ],
)
def test_a_choice_gets_the_leftmost_card_that_has_quota_and_is_free_or_has_a_pool(
    cards: str, quota: Mapping[str, int], assigned: str
) -> None:
    decision = decide(books(a_node("b").card("B", 8), quota=quota), one("p", cards))["p"]
    assert isinstance(decision, Lift)
    assert decision.assigned == {assigned: 1}


@pytest.mark.parametrize(
    ("rules", "assigned"),
    [
        ({"nodeSelector": OTHER}, "A100"),
        ({"nodeSelector": {"zone": "a"}}, "H200"),
        ([{"key": "example.com/pool", "operator": "NotIn", "values": ["h200"]}], "A100"),
        ([{"key": "example.com/pool", "operator": "In", "values": ["a100", "h200"]}], "H200"),
        ([{"key": "zone", "operator": "In", "values": ["a"]}], "H200"),
    ],
)
def test_a_pod_is_not_let_in_for_a_pool_that_its_own_rules_exclude(rules: Any, assigned: str) -> None:
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": rules}]}
    }
    spec = rules if isinstance(rules, dict) else {"affinity": {"nodeAffinity": affinity}}
    pod = one("p", "H200|A100")
    for key, value in spec.items():
        pod = pod.put("spec", key, value=value)
    decision = decide(books(), pod)["p"]
    assert isinstance(decision, Lift)
    assert decision.assigned == {assigned: 1}


@pytest.mark.parametrize("cards", ["H200", "H200|A100"])
def test_rules_that_no_pool_can_meet_are_told(cards: str) -> None:
    pod = one("p", cards).put("spec", "nodeSelector", value={"example.com/pool": "cpu"})
    assert held(decide(books(), pod)["p"]).why.code == reasons.AFFINITY_EXCLUDES_CARDS


def test_a_gang_is_lifted_whole_or_not_at_all() -> None:
    for quota, expected in (({"H200": 3}, 0), ({"H200": 4}, 4), ({"H200": 2, "A100": 2}, 4)):
        ledger = books(quota=quota)
        ledger.put_group(a_group("g").in_queue("q").min_member(4).view())
        pods = [one(f"p{i}", "H200|A100", second=i).in_group("g") for i in range(4)]
        assert len(lifted(decide(ledger, *pods))) == expected


def bind(ledger: Ledger, cards: str, node: str) -> Mapping[str, str] | Refusal:
    """The answer to the bind of a pod that was let in for H200."""
    pod = a_pod("p").gpu(1).card(cards).in_queue("q").assigned({"H200": 1}).view()
    ledger.put_pod(replace(pod, gates=()))
    return Binder(ledger, guest_book((), (), SETTINGS), SETTINGS, lambda: None).decide(pod, node)


@pytest.mark.parametrize("cards", ["H200", "H200|A100"])
def test_the_bind_takes_a_node_of_the_pool_that_does_not_show_its_product_yet(cards: str) -> None:
    answer = bind(books(FRESH), cards, "fresh")
    assert not isinstance(answer, Refusal)
    assert json.loads(answer[names.ASSIGNED_ANNOTATION]) == {"H200": 1}


def test_the_bind_refuses_a_node_of_the_pool_that_carries_another_card() -> None:
    answer = bind(books(FRESH.card("B", 2)), "H200", "fresh")
    assert isinstance(answer, Refusal)
    assert answer.code == reasons.CARD_NOT_ON_NODE


def test_a_card_with_a_pool_is_known() -> None:
    ledger = books()
    assert ledger.inventory.resource_of("H200") == RESOURCE
    assert ledger.inventory.cards() == ("A100", "H200")
    assert ledger.inventory.totals() == {}
