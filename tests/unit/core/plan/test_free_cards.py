"""Free cards are kept between questions, and are right after every change all the same."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.stock import FreeCards
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder
from tests.unit.core.plan.stepping import stepped

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


def free(stock: FreeCards) -> int:
    """The cards that a pod which may run anywhere finds free."""
    found = (
        cards for cards in range(1, 9) if finish(stock.available(ANYWHERE.node_rules, "A100", cards * 1000))
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
    stock = FreeCards(ledger, AdmittedNodes(ledger))
    assert free(stock) == 6
    change(ledger)
    assert free(stock) == free(FreeCards(ledger, AdmittedNodes(ledger))) == cards


def test_a_grant_that_is_taken_back_is_seen() -> None:
    ledger = started()
    stock = FreeCards(ledger, AdmittedNodes(ledger))
    granted(ledger)
    assert free(stock) == 3
    taken_back(ledger)
    assert free(stock) == 6


def test_a_second_node_is_seen() -> None:
    ledger = started()
    stock = FreeCards(ledger, AdmittedNodes(ledger))
    assert free(stock) == 6
    ledger.put_node(a_node("larger").card("A100", 8).view())
    assert free(stock) == 8


def test_nodes_that_are_gone_are_forgotten() -> None:
    ledger = Ledger(Settings())
    stock = FreeCards(ledger, AdmittedNodes(ledger))
    for number in range(20):
        ledger.put_node(a_node(f"n{number}").card("A100", 8).view())
        assert free(stock) == 8
        ledger.drop_node(f"n{number}")
    assert len(stock._free) <= 3


def test_what_one_pod_may_use_says_nothing_about_another() -> None:
    ledger = started()
    stock = FreeCards(ledger, AdmittedNodes(ledger))

    def available(pod: Pod) -> bool:
        return finish(stock.available(pod.node_rules, "A100", 3000))

    nowhere = OTHER.selects("zone", "a").view()
    assert [available(pod) for pod in (ANYWHERE, nowhere, ANYWHERE)] == [True, False, True]


NODES, WAITING = 1000, 500
EITHER = a_pod("either").gpu(1).card("A|B").selects("pool", "x")


def full(number: int) -> NodeBuilder:
    card = "AB"[number % 2]
    return a_node(f"n{number:04}").card(card, 1).label("pool", "x")


def on(number: int) -> Pod:
    card = "AB"[number % 2]
    return a_pod(f"on{number:04}").gpu(1).card(card).bound_to(f"n{number:04}").view()


class Asked:
    """A thousand full nodes, and five hundred pods that accept either card on nodes of one label."""

    def __init__(self) -> None:
        self.ledger = Ledger(Settings())
        for number in range(NODES):
            self.ledger.put_node(full(number).view())
        for number in range(NODES):
            self.ledger.put_pod(on(number))
        self.pods = [EITHER.uid(f"either-{number}").view() for number in range(WAITING)]
        self.nodes = AdmittedNodes(self.ledger)
        self.stock = FreeCards(self.ledger, self.nodes)

    def found(self) -> set[tuple[bool, ...]]:
        """What all pods are told: whether there is room on A, and on B."""
        return {
            tuple(finish(self.stock.available(pod.node_rules, card, 1000)) for card in "AB")
            for pod in self.pods
        }


def test_pods_alike_look_at_each_node_once_and_then_at_what_changes() -> None:
    asked = Asked()
    assert asked.found() == {(False, False)}
    assert asked.stock.counted == asked.nodes.evaluations == NODES
    asked.ledger.drop_pod(on(7).uid)
    assert asked.found() == {(False, True)}
    assert asked.stock.counted == NODES + 2, "once for each card"
    asked.ledger.put_pod(on(7))
    assert asked.found() == {(False, False)}
    assert asked.stock.counted == NODES + 4
    assert asked.nodes.evaluations == NODES
    asked.ledger.put_node(full(8).label("pool", "y").view())
    asked.ledger.drop_pod(on(8).uid)
    assert asked.found() == {(False, False)}
    assert asked.nodes.evaluations == NODES + 1
    assert asked.stock.counted <= NODES + 8


def test_nodes_are_counted_in_steps() -> None:
    asked, seen = Asked(), [0]
    stepped(
        asked.stock.available(asked.pods[0].node_rules, "A", 1000),
        lambda: seen.append(asked.stock.counted - 1),
    )
    assert max(now - before for before, now in pairwise([*seen, NODES // 2])) <= 100


def test_whether_any_node_is_admitted_does_not_depend_on_its_state() -> None:
    ledger = started()
    stock = FreeCards(ledger, AdmittedNodes(ledger))
    elsewhere = OTHER.selects("zone", "a").view().node_rules
    assert not finish(stock.admits_any(elsewhere, "A100"))
    ledger.put_node(NODE.label("zone", "a").cordoned().view())
    assert finish(stock.admits_any(elsewhere, "A100"))
    assert not finish(stock.available(elsewhere, "A100", 0))
    assert not finish(stock.admits_any(elsewhere, "B100"))
