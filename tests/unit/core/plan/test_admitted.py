"""A node is asked about once for all pods that say the same, and again only when its labels change."""

from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest

from core.node_match import NodeMatch, compiled
from core.objects import Pod
from core.objects.node_rules import ANYWHERE, REQUIRED, NodeRules
from core.plan import admitted as module
from core.plan.admitted import EVALUATED_IN_A_STEP, AdmittedNodes
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import Steps, finish
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.fakes.node_rules import admits
from tests.unit.core.plan.stepping import stepped

TERMS, EXPRESSIONS = 400, 41


def named(number: int) -> str:
    return f"n{number:04}"


def a_zoned(number: int) -> NodeBuilder:
    return a_node(named(number)).label("zone", "ab"[number % 2])


def books(nodes: int) -> Ledger:
    ledger = Ledger(Settings())
    for number in range(nodes):
        ledger.put_node(a_zoned(number).view())
    return ledger


def hostile(name: str, *, size: int = TERMS, seed: int = 0) -> Pod:
    return with_hostile_rules(a_pod(name), size=size, seed=seed).view()


def with_hostile_rules(pod: PodBuilder, *, size: int = TERMS, seed: int = 0) -> PodBuilder:
    """Terms without end, of which every node has to be asked every expression: only the last one of each fails."""
    holding = [{"key": f"none-{n}", "operator": "NotIn", "values": ["x"]} for n in range(EXPRESSIONS - 1)]
    failing = [{"key": "zone", "operator": "NotIn", "values": ["a", "b", f"{seed}-{n}"]} for n in range(size)]
    terms = [{"matchExpressions": [*holding, last]} for last in failing]
    return pod.put("spec", "affinity", "nodeAffinity", REQUIRED, value={"nodeSelectorTerms": terms})


def ask(nodes: AdmittedNodes, ledger: Ledger, rules: NodeRules) -> set[str]:
    found = finish(nodes.admitted(rules, ledger.nodes.keys()))
    return {name for name in ledger.nodes if name in found}


def ask_for_all(pods: int, nodes: AdmittedNodes, ledger: Ledger) -> None:
    """Three times for each of so many pods, each with rules of its own that admit no node."""
    those = [hostile(f"p{number}", size=4, seed=number) for number in range(pods)]
    for _ in range(3):
        for pod in those:
            assert ask(nodes, ledger, pod.node_rules) == set()


def test_a_pod_without_rules_is_admitted_everywhere_at_no_cost() -> None:
    ledger = books(5)
    nodes = AdmittedNodes(ledger)
    assert ask(nodes, ledger, ANYWHERE) == set(ledger.nodes)
    assert nodes.evaluations == 0


def test_eight_pods_with_four_hundred_terms_over_sixty_nodes_cost_what_one_costs() -> None:
    """As they come from different events, each with an affinity of its own that says the same."""
    ledger = books(60)
    nodes = AdmittedNodes(ledger)
    for number in range(8):
        assert ask(nodes, ledger, hostile(f"p{number}").node_rules) == set()
        # Each node, and each expression for all of them.
        assert nodes.evaluations == 60 + TERMS * EXPRESSIONS


def test_what_several_pods_say_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[NodeRules] = []

    def counted(rules: NodeRules) -> Steps[NodeMatch]:
        calls.append(rules)
        return compiled(rules)

    monkeypatch.setattr(module, "compiled", counted)
    ledger = books(3)
    nodes = AdmittedNodes(ledger)
    pods = [hostile(f"p{number}", size=4) for number in range(8)]
    for _ in range(3):
        for pod in pods:
            assert ask(nodes, ledger, pod.node_rules) == set()
    assert len(calls) == 1
    ask(nodes, ledger, hostile("other", size=5).node_rules)
    assert len(calls) == 2, "rules that say something else are compiled by themselves"


def test_rules_given_up_while_they_are_compiled_are_not_begun_anew() -> None:
    ledger = books(3)
    nodes, rules = AdmittedNodes(ledger), hostile("p").node_rules
    for _ in range(10):
        with closing(nodes.admitted(rules, ledger.nodes.keys())) as steps:
            for _ in zip(range(20), steps, strict=False):
                pass
    assert nodes.evaluations


def test_other_rules_cost_each_node_once_and_each_expression_once_for_hundreds_of_them() -> None:
    ledger = books(1000)
    nodes = AdmittedNodes(ledger)
    ask_for_all(5, nodes, ledger)
    assert nodes.evaluations == 5 * (1000 + 2 * 4 * EXPRESSIONS)


def test_large_rules_cost_no_more_where_one_node_is_asked_about_after_the_other() -> None:
    ledger = books(1000)
    nodes, rules = AdmittedNodes(ledger), hostile("p").node_rules
    for name in reversed(list(ledger.nodes)):
        assert name not in finish(nodes.admitted(rules, (name,)))
    assert nodes.evaluations == 1000 + 2 * TERMS * EXPRESSIONS


def test_small_rules_are_asked_only_about_the_nodes_that_are_meant() -> None:
    ledger = books(1000)
    nodes, rules = AdmittedNodes(ledger), in_zone("a").view().node_rules
    assert named(4) in finish(nodes.admitted(rules, (named(4),)))
    assert nodes.evaluations == 1


def test_more_rules_than_are_kept_compiled_are_still_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMPILED", 10 * EXPRESSIONS)
    ledger = books(3)
    nodes = AdmittedNodes(ledger)
    ask_for_all(8, nodes, ledger)
    assert nodes.evaluations == 8 * (3 + 4 * EXPRESSIONS)
    assert sum(map(len, nodes._compiled.values())) <= (10 + 4) * EXPRESSIONS


def test_work_is_done_in_steps_and_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_JUDGED_AT_ONCE", 10)
    ledger = books(20)
    nodes, pod = AdmittedNodes(ledger), hostile("p")
    seen = [0]
    # What comes next is counted already.
    stepped(
        nodes.admitted(pod.node_rules, ledger.nodes.keys()),
        lambda: seen.append(max(0, nodes.evaluations - 1)),
    )
    once = 10 + TERMS * EXPRESSIONS
    assert max(now - before for before, now in pairwise([*seen, 2 * once])) <= EVALUATED_IN_A_STEP
    assert nodes.evaluations == 2 * once

    given_up = AdmittedNodes(ledger)
    steps = given_up.admitted(pod.node_rules, ledger.nodes.keys())
    while given_up.evaluations < 2 * once - EVALUATED_IN_A_STEP:
        next(steps)
    steps.close()
    assert ask(given_up, ledger, pod.node_rules) == set()
    assert given_up.evaluations <= 3 * once, "at most the nodes in hand are asked again"


def in_zone(zone: str) -> PodBuilder:
    return a_pod().selects("zone", zone)


def test_only_the_node_whose_labels_change_is_asked_again() -> None:
    ledger = books(100)
    nodes, rules = AdmittedNodes(ledger), in_zone("a").view().node_rules
    before = ask(nodes, ledger, rules)
    assert nodes.evaluations == 100
    ledger.put_node(a_zoned(4).allocatable("cpu", 5).cordoned().view())
    ledger.put_pod(a_pod("new").gpu(1).bound_to(named(4)).view())
    assert ask(nodes, ledger, rules) == before
    assert nodes.evaluations == 100
    ledger.put_node(a_zoned(4).label("zone", "c").view())
    assert ask(nodes, ledger, rules) == before - {named(4)}
    assert nodes.evaluations == 101
    ledger.drop_node(named(6))
    assert ask(nodes, ledger, rules) == before - {named(4), named(6)}
    ledger.put_node(a_zoned(6).label("zone", "b").view())
    assert ask(nodes, ledger, rules) == before - {named(4), named(6)}
    assert nodes.evaluations == 102


def test_a_node_relabelled_while_it_is_asked_about_is_asked_again() -> None:
    ledger = books(2)
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a", f"{n}"]}]}
        for n in range(1900)
    ]
    pod = a_pod().put("spec", "affinity", "nodeAffinity", REQUIRED, value={"nodeSelectorTerms": terms}).view()
    nodes = AdmittedNodes(ledger)
    relabelled = [a_zoned(0).label("zone", "z"), a_zoned(0).label("zone", "a")]

    def relabel() -> None:
        # Not while the rules are still read.
        if nodes.evaluations and relabelled:
            ledger.put_node(relabelled.pop(0).view())

    found = stepped(nodes.admitted(pod.node_rules, ledger.nodes.keys()), relabel)
    assert not relabelled
    assert [name in found for name in ledger.nodes] == [admits(pod, node) for node in ledger.nodes.values()]


def test_rules_that_nobody_asks_about_any_more_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 100)
    ledger = books(10)
    nodes = AdmittedNodes(ledger)
    rules: list[Any] = [a_pod().selects("zone", f"{number}").view().node_rules for number in range(30)]
    for each in rules:
        ask(nodes, ledger, each)
        ask(nodes, ledger, rules[0])
    assert sum(1 + len(kept) for kept in nodes._verdicts.values()) <= 100 + 11
    assert nodes.evaluations == 30 * 10, "the one that is used is kept"
