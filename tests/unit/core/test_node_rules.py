"""Pods that say the same about their nodes share one object that says it."""

import gc
from datetime import date
from typing import Any
from weakref import ref

import pytest

from core.objects import Pod, pod
from core.objects.node_rules import ANYWHERE, REQUIRED
from tests.builders import a_pod
from tests.builders.objects import PodBuilder


def requiring(*values: Any) -> PodBuilder:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(values)}]}
    return a_pod().put("spec", "affinity", "nodeAffinity", REQUIRED, value={"nodeSelectorTerms": [term]})


def view(built: PodBuilder) -> Pod:
    return pod.project(built.raw)


def test_equal_rules_are_one_object_whatever_else_differs() -> None:
    one, other = requiring("a").selects("x", "y").view(), requiring("a").selects("x", "y").priority(5).view()
    assert one is not other
    assert one.node_rules is other.node_rules
    assert one.affinity["nodeAffinity"][REQUIRED] is other.affinity["nodeAffinity"][REQUIRED]
    preferring = requiring("a").selects("x", "y").put("spec", "affinity", "podAffinity", value={"any": 1})
    assert preferring.view().node_rules is one.node_rules
    assert preferring.view().affinity["podAffinity"] == {"any": 1}


@pytest.mark.parametrize("text", ["null", "nullable", "not-null"])
def test_a_text_that_holds_the_word_null_is_shared_as_any_other(text: str) -> None:
    assert requiring(text, "a").view().node_rules is requiring(text, "a").view().node_rules


@pytest.mark.parametrize(
    "other",
    [
        requiring("b"),
        requiring("a", "b"),
        requiring("a").selects("x", "y"),
        a_pod(),
        requiring(None),
        requiring(1),
    ],
)
def test_other_rules_are_another_object(other: PodBuilder) -> None:
    one = requiring("a").view()
    assert one.node_rules is not other.view().node_rules


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (float("nan"), None),
        ([float("inf")], [None]),
        ({"k": float("nan")}, {"k": None}),
        (date(2024, 1, 1), "2024-01-01"),
        ("\ud800", "\ud801"),
        ({1: 2}, {"1": 2}),
    ],
)
def test_what_json_cannot_tell_apart_is_not_shared(one: Any, other: Any) -> None:
    """Only a file can hold such values."""
    left, right = view(requiring(one)), view(requiring(other))
    assert left.node_rules is not right.node_rules
    assert left.affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"][0][
        "values"
    ] == [one]


def test_of_several_values_a_null_at_the_end_is_not_shared() -> None:
    assert requiring("a", float("nan")).view().node_rules is not requiring("a", None).view().node_rules


def test_a_pod_without_rules_may_run_anywhere() -> None:
    for free in (a_pod(), a_pod().put("spec", "affinity", value={"nodeAffinity": {REQUIRED: {}}})):
        assert free.view().node_rules is ANYWHERE
    assert ANYWHERE.anywhere
    assert not requiring("a").view().node_rules.anywhere


def test_what_has_a_node_needs_no_rules() -> None:
    bound = requiring("a").selects("x", "y").bound_to("n").view()
    assert (bound.node_rules, bound.affinity, bound.node_selector) == (ANYWHERE, {}, {})


def test_rules_go_with_the_last_pod_that_has_them() -> None:
    pods = [requiring("only here").view(), requiring("only here").view()]
    rules = ref(pods[0].node_rules)
    pods.pop()
    gc.collect()
    assert rules() is pods[0].node_rules
    pods.clear()
    gc.collect()
    assert rules() is None
