"""`cards.podsWithoutCardName: infer`: pods that name no card are charged for the one that their namespace names."""

import json
from typing import Any

import pytest

from core import names, reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import NamespaceBuilder
from tests.builders.pods import PodBuilder

UNNAMED = a_pod("p").gpu(1).in_queue("q").gated()


def named(card: str) -> NamespaceBuilder:
    return a_namespace().annotation(names.DEFAULT_CARD_ANNOTATION, card)


def books(*pods: PodBuilder, namespace: NamespaceBuilder | None = None, **cards: Any) -> Ledger:
    """One node of eight A, a queue of two, and pods in the namespace."""
    settings = {"cards": {"podsWithoutCardName": "infer", **cards}}
    ledger = Ledger(Settings.model_validate(settings))
    ledger.put_node(a_node("n").card("A", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": 2}).view())
    ledger.put_namespace((namespace or a_namespace()).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def decided(ledger: Ledger) -> dict[str, Lift | Hold]:
    finish(ledger.settle())
    return {decision.pod.name: decision for decision in Planner(ledger).decide("q")}


def hold(ledger: Ledger) -> Hold:
    decision = decided(ledger)["p"]
    assert isinstance(decision, Hold)
    return decision


def test_it_is_lifted_for_the_card_of_its_namespace_and_says_so_itself_from_then_on() -> None:
    lift = decided(books(UNNAMED, namespace=named("A")))["p"]
    assert isinstance(lift, Lift)
    assert lift.assigned == {"A": 1}
    written = {op["path"]: op["value"] for op in lift.patch if op["op"] == "add"}
    assert written["/metadata/annotations/volcano.sh~1card.name"] == "A"
    assert json.loads(written["/metadata/annotations/cardquota.io~1assigned"]) == {"A": 1}
    assert lift.lifted.card_name == "A"


def test_quota_holds_as_for_any_other() -> None:
    pods = [a_pod(f"p{number}").gpu(1).in_queue("q").gated() for number in range(3)]
    decisions = decided(books(*pods, namespace=named("A")))
    assert [isinstance(decision, Lift) for decision in decisions.values()] == [True, True, False]


def test_without_a_card_of_the_namespace_it_waits_and_hears_the_way_out() -> None:
    found = hold(books(UNNAMED))
    assert found.why.code == reasons.CARD_NAME_MISSING
    assert names.CARD_NAME_ANNOTATION in found.why.message
    assert f"{names.DEFAULT_CARD_ANNOTATION} on namespace ml" in found.why.message


def test_a_namespace_that_names_one_later_lets_it_go_and_one_that_changes_its_mind_is_followed() -> None:
    ledger = books(UNNAMED)
    assert hold(ledger).why.code == reasons.CARD_NAME_MISSING
    ledger.put_namespace(named("B").view())
    assert hold(ledger).why.code == reasons.GET_TASK_REQUEST_RESOURCE_FAILED
    ledger.put_namespace(a_namespace().view())
    assert hold(ledger).why.code == reasons.CARD_NAME_MISSING
    ledger.wakeups.take_queues()
    ledger.put_namespace(named("A").view())
    assert "q" in ledger.wakeups.take_queues()
    assert isinstance(decided(ledger)["p"], Lift)


def test_a_namespace_that_goes_before_its_pods_names_no_card_to_them_any_more() -> None:
    """As where somebody has taken its finalizers away."""
    ledger = books(UNNAMED, namespace=named("A"))
    assert [entry.pod.card_name for entry in ledger.entries()] == ["A"]
    ledger.drop_namespace("ml")
    assert hold(ledger).why.code == reasons.CARD_NAME_MISSING


def test_two_resources_of_cards_are_one_too_many() -> None:
    pod = a_pod("p").gpu(1).limit("nvidia.com/mig-1g.10gb", 7).in_queue("q").gated()
    assert hold(books(pod, namespace=named("A"))).why.code == reasons.CARD_NAME_MISSING


def test_its_own_name_comes_first() -> None:
    own = a_pod("p").gpu(1).card("A").in_queue("q").gated()
    lift = decided(books(own, namespace=named("B")))["p"]
    assert isinstance(lift, Lift)
    assert "card.name" not in str(lift.patch)


def test_a_resource_that_stands_for_no_card_needs_no_name() -> None:
    """The webhook did not know the nodes, and gated it."""
    pod = a_pod("p").limit("rdma/hca", 1).in_queue("q").gated()
    lift = decided(books(pod, namespace=named("A")))["p"]
    assert isinstance(lift, Lift)
    assert lift.assigned == {}


def test_a_node_that_shows_the_resource_to_be_a_cards_holds_it_from_then_on() -> None:
    pod = a_pod("p").limit("huawei.com/npu", 1).in_queue("q").gated()
    ledger = books(pod)
    ledger.put_node(a_node("new").card("N", 8, prefix="huawei.com/npu").view())
    assert hold(ledger).why.code == reasons.CARD_NAME_MISSING


@pytest.mark.parametrize("policy", ["ignore", "warn", "deny"])
def test_otherwise_a_namespace_says_nothing_about_cards(policy: str) -> None:
    lift = decided(books(UNNAMED, namespace=named("A"), podsWithoutCardName=policy))["p"]
    assert isinstance(lift, Lift)
    assert lift.assigned == {}


def test_pods_that_are_gone_are_not_brought_back_by_their_namespace() -> None:
    ledger = books(UNNAMED)
    ledger.drop_pod(UNNAMED.view().uid)
    ledger.put_namespace(named("A").view())
    assert list(ledger.entries()) == []


def test_a_lift_that_fails_finds_the_card_that_the_namespace_names_by_then() -> None:
    ledger = books(UNNAMED, namespace=named("A"))
    lift = decided(ledger)["p"]
    assert isinstance(lift, Lift)
    ledger.put_namespace(a_namespace().view())
    ledger.retract(lift.lifted)
    assert hold(ledger).why.code == reasons.CARD_NAME_MISSING


def test_once_let_in_it_does_not_follow_its_namespace() -> None:
    ledger = books(UNNAMED, namespace=named("A"))
    lift = decided(ledger)["p"]
    assert isinstance(lift, Lift)
    ledger.put_namespace(named("B").view())
    entry = ledger.entry(UNNAMED.view().uid)
    assert entry is not None
    assert entry.charged == {"A": 1000}
