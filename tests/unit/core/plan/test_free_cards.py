"""Free cards are kept between questions, and are right after every change all the same."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.affinity import rules_of
from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.stock import CardStock
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod

NODE = a_node("n").card("A100", 8)
BOUND = a_pod("bound").gpu(2).card("A100").bound_to("n").view()
OTHER = a_pod("other").gpu(3).card("A100").gated()
ANYWHERE = a_pod("anywhere").gpu(1).card("A100").view()
Change = Callable[[Ledger], None]


def started() -> Ledger:
    """Eight cards, two of them in use, and a pod that has no node yet."""
    ledger = Ledger(Settings())
    ledger.put_node(NODE.view())
    ledger.put_pod(BOUND)
    ledger.put_pod(OTHER.view())
    return ledger


def granted(ledger: Ledger) -> None:
    ledger.assume(replace(OTHER.view(), node_name="n"))


def taken_back(ledger: Ledger) -> None:
    ledger.forget(OTHER.view().uid)


def free(stock: CardStock) -> int:
    """The cards that a pod which may run anywhere finds free."""
    found = (
        cards for cards in range(1, 9) if finish(stock.available(rules_of(ANYWHERE), "A100", cards * 1000))
    )
    return max(found, default=0)


CHANGES: dict[str, tuple[Change, int]] = {
    "nothing": (lambda _: None, 6),
    "another pod is bound": (lambda ledger: ledger.put_pod(OTHER.bound_to("n").view()), 3),
    "a pod ends": (lambda ledger: ledger.put_pod(replace(BOUND, phase="Succeeded")), 8),
    "a pod goes": (lambda ledger: ledger.drop_pod(BOUND.uid), 8),
    "a grant is assumed": (granted, 3),
    "the node loses a card": (lambda ledger: ledger.put_node(a_node("n").card("A100", 7).view()), 5),
}


@pytest.mark.parametrize(("change", "cards"), CHANGES.values(), ids=CHANGES)
def test_a_change_on_the_node_is_seen(change: Change, cards: int) -> None:
    ledger = started()
    stock = CardStock(ledger, AdmittedNodes(ledger))
    assert free(stock) == 6
    change(ledger)
    assert free(stock) == free(CardStock(ledger, AdmittedNodes(ledger))) == cards


def test_a_grant_that_is_taken_back_is_seen() -> None:
    ledger = started()
    stock = CardStock(ledger, AdmittedNodes(ledger))
    granted(ledger)
    assert free(stock) == 3
    taken_back(ledger)
    assert free(stock) == 6


def test_a_second_node_is_seen() -> None:
    ledger = started()
    stock = CardStock(ledger, AdmittedNodes(ledger))
    assert free(stock) == 6
    ledger.put_node(a_node("larger").card("A100", 8).view())
    assert free(stock) == 8


def test_nodes_that_are_gone_are_forgotten() -> None:
    ledger = Ledger(Settings())
    stock = CardStock(ledger, AdmittedNodes(ledger))
    for number in range(20):
        ledger.put_node(a_node(f"n{number}").card("A100", 8).view())
        assert free(stock) == 8
        ledger.drop_node(f"n{number}")
    assert len(stock._free) <= 3


def test_what_one_pod_may_use_says_nothing_about_another() -> None:
    ledger = started()
    stock = CardStock(ledger, AdmittedNodes(ledger))

    def available(pod: Pod) -> bool:
        return finish(stock.available(rules_of(pod), "A100", 3000))

    nowhere = OTHER.selects("zone", "a").view()
    assert [available(pod) for pod in (ANYWHERE, nowhere, ANYWHERE)] == [True, False, True]
