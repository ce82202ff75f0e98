"""However much the node rules of a pod say, no step of compiling or asking them is longer for it. In calls, not in time."""

from collections.abc import Callable
from typing import Any

import pytest

from core.node_match import compiled
from core.objects.node_rules import REQUIRED, NodeRules
from core.steps import Pace, finish
from tests.builders import a_node, a_pod
from tests.fakes.counted import calls_of, longest_step

Term = list[dict[str, Any]]
Terms = list[Term]

MARGIN = 1.3
"""The size of the last piece, and what a first one makes for all."""
FEW, MANY = 100, 400
EXPRESSIONS = 41


def expressions(number: int, last: str) -> Term:
    """So many that differ, the last one from that of every other term; it alone does not hold."""
    holding = [{"key": f"none-{n}", "operator": "NotIn", "values": ["x"]} for n in range(number - 1)]
    return [*holding, {"key": last, "operator": "Exists"}]


def many_terms(number: int) -> Terms:
    return [expressions(EXPRESSIONS, f"last-{n}") for n in range(number)]


def a_long_term(number: int) -> Terms:
    return [expressions(EXPRESSIONS * number, "last")]


def empty_terms(number: int) -> Terms:
    return [[]] * (EXPRESSIONS * number)


def a_long_list(number: int) -> Terms:
    values = [f"{n:x}" for n in range(20 * EXPRESSIONS * number)]
    return [[{"key": "k", "operator": "In", "values": values}]]


def many_numbers(number: int) -> Terms:
    return [[{"key": f"size-{n}", "operator": "Gt", "values": ["1000"]}] for n in range(number)]


def rules(terms: Terms) -> NodeRules:
    written = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return a_pod().put("spec", "affinity", "nodeAffinity", REQUIRED, value=written).view().node_rules


@pytest.mark.parametrize("terms", [many_terms, a_long_term, empty_terms, a_long_list])
def test_no_step_is_longer_where_more_is_said(terms: Callable[[int], Terms]) -> None:
    few, many = (longest_step(compiled(rules(terms(number)))) for number in (FEW, MANY))
    assert many < MARGIN * few


@pytest.mark.parametrize("terms", [many_terms, a_long_term])
def test_no_step_of_asking_is_longer_where_more_is_said(terms: Callable[[int], Terms]) -> None:
    assert longest_asking(terms(MANY), sizes=1) < MARGIN * longest_asking(terms(FEW), sizes=1)


def test_no_step_of_asking_is_longer_where_more_labels_are_numbers() -> None:
    """All that nodes say under a key is read before the first comparison."""
    few, many = (longest_asking(many_numbers(sizes), sizes) for sizes in (10, 40))
    assert many < MARGIN * few


def longest_asking(terms: Terms, sizes: int) -> int:
    nodes = [
        a_node(f"n{n}").put("metadata", "labels", value={f"size-{s}": f"{n}" for s in range(sizes)}).view()
        for n in range(200)
    ]
    return longest_step(finish(compiled(rules(terms))).admitted(nodes, Pace(500)))


def test_a_selector_without_end_costs_what_a_short_one_costs() -> None:
    assert asking_for_labels(9999) == asking_for_labels(1)


def asking_for_labels(number: int) -> int:
    pod = a_pod().put("spec", "nodeSelector", value={f"k{n}": "" for n in range(number)}).view()
    return calls_of(lambda: finish(finish(compiled(pod.node_rules)).admits(a_node().view(), Pace(1))))
