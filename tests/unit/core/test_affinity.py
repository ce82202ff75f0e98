"""What node rules admit, and how they are narrowed without breaking the API server's rules for gated pods."""

import copy
from typing import Any

import pytest

from core.affinity import Expression, NodeRequirement, narrowing
from core.objects.node_rules import REQUIRED
from tests.builders import a_node, a_pod
from tests.fakes.node_rules import admits
from tests.fakes.patches import applied

PRODUCT = Expression("nvidia.com/gpu.product", "In", ("A",))
ON_PRODUCT = NodeRequirement.all_of(PRODUCT)
JSON = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A"]}
FULL = {"nodeSelectorTerms": [{"matchExpressions": [JSON]}]}
TERMS = f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms"


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


ZONE = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


@pytest.mark.parametrize(
    ("affinity", "path", "value"),
    [
        ({}, "/spec/affinity", {"nodeAffinity": {REQUIRED: FULL}}),
        ({"podAffinity": {"x": 1}}, "/spec/affinity/nodeAffinity", {REQUIRED: FULL}),
        ({"nodeAffinity": {}}, f"/spec/affinity/nodeAffinity/{REQUIRED}", FULL),
        ({"nodeAffinity": {"preferred": []}}, f"/spec/affinity/nodeAffinity/{REQUIRED}", FULL),
        (required(ZONE), f"{TERMS}/0/matchExpressions/-", JSON),
        (required(NAMED), f"{TERMS}/0/matchExpressions", [JSON]),
    ],
)
def test_the_requirement_is_added_with_the_parents_that_are_missing(
    affinity: dict[str, Any], path: str, value: Any
) -> None:
    assert narrowing(affinity, ON_PRODUCT) == [{"op": "add", "path": path, "value": value}]


def test_every_existing_term_is_narrowed_and_an_empty_one_stays_empty() -> None:
    patch = narrowing(required(ZONE, {}, NAMED), ON_PRODUCT)
    assert [operation["path"] for operation in patch] == [
        f"{TERMS}/0/matchExpressions/-",
        f"{TERMS}/2/matchExpressions",
    ]


@pytest.mark.parametrize(
    "affinity", [{}, {"nodeAffinity": {}}, required(ZONE), required(NAMED), required(ZONE, {}, NAMED)]
)
def test_what_is_narrowed_already_stays_as_it_is(affinity: dict[str, Any]) -> None:
    """A pod of which somebody undoes the lift in part, again and again, grew by an expression each time."""
    pod = copy.deepcopy({"spec": {"affinity": affinity} if affinity else {}})
    assert applied(pod, narrowing(affinity, ON_PRODUCT))
    assert narrowing(pod["spec"]["affinity"], ON_PRODUCT) == []


FIXED = NodeRequirement(
    ((Expression("policy", "In", ("fixed",)),), (Expression("policy", "DoesNotExist"),)),
    (Expression("policy", "NotIn", ("burst",)),),
)


def test_alternatives_become_terms_and_existing_terms_get_the_conjunction() -> None:
    (fresh,) = narrowing({}, FIXED)
    assert len(fresh["value"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) == 2
    (added,) = narrowing(required(ZONE), FIXED)
    assert added["value"] == {"key": "policy", "operator": "NotIn", "values": ["burst"]}


def test_nothing_to_narrow_gives_no_operation() -> None:
    assert narrowing(required(ZONE), NodeRequirement()) == []
    assert narrowing({}, NodeRequirement.all_of()) == []


def test_of_two_requirements_the_first_comes_first_in_every_alternative() -> None:
    assert NodeRequirement() & ON_PRODUCT == ON_PRODUCT & NodeRequirement() == ON_PRODUCT
    both = ON_PRODUCT & FIXED
    assert both.alternatives == tuple((PRODUCT, *each) for each in FIXED.alternatives)
    assert both.implied == (PRODUCT, *FIXED.implied)


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "In", "values": []}, False),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "other", "operator": "DoesNotExist"}, True),
        ({"key": "size", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "size", "operator": "Gt", "values": ["5"]}, False),
        ({"key": "size", "operator": "Lt", "values": ["6"]}, True),
        ({"key": "zone", "operator": "Lt", "values": ["6"]}, False),
        ({"key": "size", "operator": "Gt", "values": []}, False),
        ({"key": "zone", "operator": "Like", "values": ["a"]}, False),
        ("garbage", False),
    ],
)
def test_a_node_selector_expression_matches_as_the_scheduler_matches_it(
    expression: Any, matches: bool
) -> None:
    node = a_node("n1").label("zone", "a").label("size", "5").view()
    pod = a_pod().put("spec", "affinity", value=required({"matchExpressions": [expression]})).view()
    assert admits(pod, node) is matches


@pytest.mark.parametrize(
    ("terms", "matches"),
    [([], False), ([{}], False), ([NAMED], True), ([{}, ZONE], True), ([{**NAMED, **ZONE}], True)],
)
def test_terms_are_alternatives_and_an_empty_one_admits_nothing(
    terms: list[dict[str, Any]], matches: bool
) -> None:
    node = a_node("n1").label("zone", "a").view()
    assert admits(a_pod().put("spec", "affinity", value=required(*terms)).view(), node) is (matches)


def test_the_node_selector_must_match_as_well() -> None:
    node = a_node("n1").label("zone", "a").view()
    assert admits(a_pod().selects("zone", "a").view(), node)
    assert not admits(a_pod().selects("zone", "b").view(), node)
