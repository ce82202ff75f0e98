"""However much the node rules of a pod say, no step of compiling them is longer for it. In calls, not in time."""

from collections.abc import Callable
from typing import Any

import pytest

from core.node_match import compiled
from core.objects.node_rules import REQUIRED, NodeRules
from tests.builders import a_pod
from tests.fakes.counted import longest_step

Term = list[dict[str, Any]]
Terms = list[Term]

MARGIN = 1.3
"""The size of the last piece, and what a first one makes for all."""
FEW, MANY = 100, 400
EXPRESSIONS = 41


def expressions(number: int, last: str) -> Term:
    """So many that differ, the last one from that of every other term."""
    keys = [f"none-{n}" for n in range(number - 1)]
    return [{"key": key, "operator": "NotIn", "values": ["x"]} for key in [*keys, last]]


def many_terms(number: int) -> Terms:
    return [expressions(EXPRESSIONS, f"last-{n}") for n in range(number)]


def a_long_term(number: int) -> Terms:
    return [expressions(EXPRESSIONS * number, "last")]


def empty_terms(number: int) -> Terms:
    return [[]] * (EXPRESSIONS * number)


def rules(terms: Terms) -> NodeRules:
    written = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return a_pod().put("spec", "affinity", "nodeAffinity", REQUIRED, value=written).view().node_rules


@pytest.mark.parametrize("terms", [many_terms, a_long_term, empty_terms])
def test_no_step_is_longer_where_more_is_said(terms: Callable[[int], Terms]) -> None:
    few, many = (longest_step(compiled(rules(terms(number)))) for number in (FEW, MANY))
    assert many < MARGIN * few
