"""Compiled node rules say what the reference says, of any rules and any node."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from core.node_match import compiled
from core.objects import Node, Pod, node, pod
from core.objects.node_rules import REQUIRED
from core.steps import Pace, finish
from tests.builders import a_node, a_pod
from tests.fakes.node_rules import admits

KEYS = ("zone", "size", "", "metadata.name")
VALUES = ("a", "b", "5", "7", "", "n1", " 5", "1_0", "x" * 5)
garbage = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=2), st.just([]), st.just({})
)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What an API server stores, and now and then something else."""
    return st.integers(0, 15).flatmap(lambda number: good if number else garbage)


keys = mostly(st.sampled_from(KEYS))
operators = mostly(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
values = mostly(st.lists(mostly(st.sampled_from(VALUES)), min_size=1, max_size=3))
expressions = mostly(st.fixed_dictionaries({"key": keys, "operator": operators, "values": values}))
several = mostly(st.lists(expressions, min_size=1, max_size=3))
terms = mostly(
    st.one_of(
        st.fixed_dictionaries({"matchExpressions": several}),
        st.fixed_dictionaries({"matchFields": several}),
        st.fixed_dictionaries({}, optional={"matchExpressions": several, "matchFields": several}),
    )
)
required = mostly(
    st.fixed_dictionaries({"nodeSelectorTerms": mostly(st.lists(terms, min_size=1, max_size=3))})
)
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


@st.composite
def a_ruled_pod(draw: st.DrawFn) -> Pod:
    built = a_pod().put("spec", "affinity", value={"nodeAffinity": {REQUIRED: draw(required)}})
    return pod.project(
        built.put("spec", "nodeSelector", value=draw(st.one_of(st.just({}), st.just({}), labels))).raw
    )


def labelled(name: str, said: dict[str, str]) -> Node:
    return node.project(a_node(name).put("metadata", "labels", value=said).raw)


@settings(max_examples=300)
@given(a_ruled_pod(), st.lists(labels, min_size=1, max_size=6), st.integers(1, 5))
def test_compiled_rules_admit_what_the_reference_admits(
    ruled: Pod, said: list[dict[str, str]], step: int
) -> None:
    """One node after the other, and all at once."""
    nodes = [labelled(f"n{number}", each) for number, each in enumerate(said)]
    match, pace = finish(compiled(ruled.node_rules)), Pace(step)
    for each in nodes:
        assert finish(match.admits(each, pace)) is admits(ruled, each)
    assert finish(match.admitted(nodes, pace)) == {each.name for each in nodes if admits(ruled, each)}


def exact(term: dict[str, Any]) -> Pod:
    return (
        a_pod()
        .put("spec", "affinity", "nodeAffinity", REQUIRED, value={"nodeSelectorTerms": [term] * 3})
        .view()
    )


@given(st.lists(expressions, min_size=1, max_size=4))
def test_repetitions_cost_nothing(several: list[Any]) -> None:
    once = finish(compiled(exact({"matchExpressions": several}).node_rules))
    again = finish(compiled(exact({"matchExpressions": several * 5}).node_rules))
    assert once.size == again.size <= len(several)
