"""The schema of spec.dra, and where it is added."""

from typing import Any

import pytest

from core.admission.dispatch import MUTATE_QUEUE_CRD, PATHS, review
from core.admission.request import ClusterView, Decision
from core.dra.schema import QUEUE_CRD, SPEC_DRA, extension
from tests.unit.core.admission.samples import answer, creation, patched, settings, update


def a_crd(name: str = QUEUE_CRD, **versions: Any) -> dict[str, Any]:
    """A definition of Queue; `a_crd(v1={"weight": {}})` has one version whose spec has these properties."""
    listed = [
        {"name": version, "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
        for version, spec in versions.items()
    ]
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": name}, "spec": {"versions": listed}}


PLAIN = {"properties": {"weight": {"type": "integer"}}}
STOCK = a_crd(v1beta1=PLAIN)
EXTENDED = a_crd(v1beta1={"properties": {"weight": {"type": "integer"}, "dra": SPEC_DRA}})


def ask(crd: dict[str, Any], old: dict[str, Any] | None = None, **sections: Any) -> Decision:
    request = creation(crd) if old is None else update(old, crd)
    return answer(request, ClusterView(), settings(**sections))


@pytest.mark.parametrize("old", [None, STOCK, EXTENDED])
def test_the_field_is_added_in_the_write_that_would_lack_it(old: dict[str, Any] | None) -> None:
    decision = ask(STOCK, old)
    assert [operation.pointer for operation in decision.patch] == [
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/dra"
    ]
    assert patched(STOCK, decision.patch) == EXTENDED


@pytest.mark.parametrize(
    "crd",
    [
        EXTENDED,
        a_crd("podgroups.scheduling.volcano.sh", v1beta1=PLAIN),
        a_crd(),
        a_crd(v1beta1={"x-kubernetes-preserve-unknown-fields": True}),
        a_crd(v1beta1={"properties": []}),
        a_crd(v1beta1={"properties": {"dra": {"type": "object"}}}),
        {**STOCK, "spec": {"versions": ["x", None]}},
    ],
)
def test_any_other_definition_is_left_as_it_is(crd: dict[str, Any]) -> None:
    assert ask(crd).patch == ()
    assert extension(crd) == []


@pytest.mark.parametrize("sections", [{"dra": {"queueCRD": "leave"}}, {"features": {"dra": False}}])
def test_on_request_every_definition_is_left_as_it_is(sections: dict[str, Any]) -> None:
    assert ask(STOCK, **sections).patch == ()


def test_every_version_gets_the_field() -> None:
    both = a_crd(v1beta1={"properties": {"dra": SPEC_DRA}}, v1=PLAIN)
    assert [operation.path[2] for operation in ask(both).patch] == ["1"]


def test_the_path_of_its_own_answers_alone() -> None:
    decision = review(creation(STOCK), ClusterView(), settings(), rules=PATHS[MUTATE_QUEUE_CRD])
    assert len(decision.patch) == 1


def test_a_stored_definition_is_patched_only_while_its_versions_are_what_they_were() -> None:
    patch = extension(a_crd(v1alpha1={"properties": {"dra": {}}}, v1beta1=PLAIN))
    assert patch == [
        {"op": "test", "path": "/spec/versions/1/name", "value": "v1beta1"},
        {
            "op": "add",
            "path": "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/dra",
            "value": SPEC_DRA,
        },
    ]
