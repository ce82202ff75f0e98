"""Pods that accept one of several cards: which one they get, and when they wait."""

import pytest

from core import reasons
from core.plan.decision import Lift
from core.plan.lift import Planner
from tests.builders import a_node, a_pod, a_queue
from tests.unit.core.plan.lifting import books, decide, held, lifted, one


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ({}, "H200"),
        ({"H200": 3}, "H100"),
        ({"H200": 2}, "H200"),
    ],
)
def test_a_choice_takes_the_leftmost_card_with_quota(used: dict[str, int], expected: str) -> None:
    ledger = books(a_queue("q").cards({"H200": 3, "H100": 3}))
    for card, count in used.items():
        ledger.put_pod(a_pod(f"used-{card}").gpu(count).card(card).in_queue("q").bound_to("h1").view())
    decision = decide(ledger, one("p", "H200|H100"))["p"]
    assert isinstance(decision, Lift)
    assert decision.assigned == {expected: 1}


def test_a_choice_takes_the_next_card_when_the_first_has_no_stock() -> None:
    ledger = books(a_queue("q").cards({"H200": 20, "H100": 3}))
    ledger.put_pod(a_pod("foreign").gpu(8).bound_to("h1").view())
    decision = decide(ledger, one("p", "H200|H100"))["p"]
    assert isinstance(decision, Lift)
    assert decision.assigned == {"H100": 1}


def test_a_choice_without_any_stock_waits_and_is_woken_when_a_pod_leaves_its_node() -> None:
    ledger = books(a_queue("q").cards({"H200": 20, "H100": 20}))
    for node in ("h1", "h2"):
        ledger.put_pod(a_pod(f"foreign-{node}").gpu(8).bound_to(node).view())
    why = held(decide(ledger, one("p", "H200|H100"))["p"]).why
    assert (why.code, why.message) == (
        reasons.NO_FREE_CARD,
        "Queue <q> has quota, but no node has 1 of <H200|H100> free",
    )
    ledger.wakeups.take_queues()
    ledger.drop_pod("uid-ml-foreign-h2")
    assert set(ledger.wakeups.pending) == {"q"}
    assert lifted({d.pod.name: d for d in Planner(ledger).decide("q")}) == ["p"]


def test_two_choices_in_one_pass_do_not_share_one_slot() -> None:
    ledger = books(a_queue("q").cards({"H200": 1, "H100": 0}))
    assert lifted(decide(ledger, one("a", "H200|H100", second=1), one("b", "H200|H100", second=2))) == ["a"]


def test_a_single_card_without_stock_is_lifted_and_a_choice_excluded_by_its_own_affinity_is_told_so() -> None:
    ledger = books(a_queue("q").cards({"H200": 20, "H100": 20}))
    ledger.put_pod(a_pod("foreign").gpu(8).bound_to("h1").view())
    assert lifted(decide(ledger, one("single"))) == ["single"]
    excluded = one("excluded", "H200|H100").needs_node("zone", "moon")
    assert held(decide(ledger, excluded)["excluded"]).why.code == reasons.AFFINITY_EXCLUDES_CARDS


def test_nodes_that_are_cordoned_or_not_ready_are_no_stock() -> None:
    nodes = (a_node("h1").card("H200", 8).cordoned(), a_node("h2").card("H100", 8).not_ready())
    ledger = books(a_queue("q").cards({"H200": 20, "H100": 20}), nodes=nodes)
    assert held(decide(ledger, one("p", "H200|H100"))["p"]).why.code == reasons.NO_FREE_CARD
