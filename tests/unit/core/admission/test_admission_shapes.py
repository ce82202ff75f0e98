"""Fields of the wrong JSON type: refused by their path, and nothing else is looked at then."""

from typing import Any

import pytest

from core import names, reasons
from core.admission import shapes
from tests.unit.core.admission.samples import a_card_pod, a_pod, an_mgpu_pod, answer, changed, codes, creation

WRONG: list[tuple[tuple[str, ...], str, Any, str]] = [
    (("metadata",), "annotations", [], "metadata.annotations"),
    (("metadata",), "annotations", "x", "metadata.annotations"),
    (("metadata", "annotations"), "a/b", 1, "metadata.annotations[a/b]"),
    (("metadata", "annotations"), "a/b", True, "metadata.annotations[a/b]"),
    (
        ("metadata", "annotations"),
        names.CARD_NAME_ANNOTATION,
        {"A": 1},
        "metadata.annotations[volcano.sh/card.name]",
    ),
    (("metadata",), "labels", ["x"], "metadata.labels"),
    (("metadata",), "labels", {"x": 1}, "metadata.labels[x]"),
    (("metadata",), "name", 1, "metadata.name"),
    (("metadata",), "generateName", {}, "metadata.generateName"),
    ((), "metadata", "x", "metadata"),
    ((), "metadata", [], "metadata"),
    ((), "spec", 0, "spec"),
    ((), "spec", False, "spec"),
    ((), "spec", [], "spec"),
    (("spec",), "nodeName", 1, "spec.nodeName"),
    (("spec",), "schedulerName", [], "spec.schedulerName"),
    (("spec",), "containers", {}, "spec.containers"),
    (("spec",), "containers", "x", "spec.containers"),
    (("spec",), "containers", [None], "spec.containers[0]"),
    (("spec",), "containers", [{}, "x"], "spec.containers[1]"),
    (("spec",), "containers", [{"name": 1}], "spec.containers[0].name"),
    (("spec",), "containers", [{"resources": []}], "spec.containers[0].resources"),
    (("spec",), "containers", [{"resources": {"limits": []}}], "spec.containers[0].resources.limits"),
    (
        ("spec",),
        "containers",
        [{"resources": {"limits": {"cpu": True}}}],
        "spec.containers[0].resources.limits[cpu]",
    ),
    (
        ("spec",),
        "containers",
        [{"resources": {"requests": {"a/b": []}}}],
        "spec.containers[0].resources.requests[a/b]",
    ),
    (("spec",), "initContainers", 1, "spec.initContainers"),
    (("spec",), "initContainers", [{"restartPolicy": 1}], "spec.initContainers[0].restartPolicy"),
    (("spec",), "resourceClaims", {}, "spec.resourceClaims"),
    (("spec",), "resourceClaims", ["x"], "spec.resourceClaims[0]"),
    (("spec",), "resourceClaims", [{"name": 1}], "spec.resourceClaims[0].name"),
    (("spec",), "schedulingGates", "x", "spec.schedulingGates"),
    (("spec",), "schedulingGates", [[]], "spec.schedulingGates[0]"),
    (("spec",), "schedulingGates", [{"name": 3}], "spec.schedulingGates[0].name"),
    (("spec",), "overhead", [], "spec.overhead"),
]


@pytest.mark.parametrize(("parents", "key", "value", "path"), WRONG)
@pytest.mark.parametrize("base", [a_pod, a_card_pod, an_mgpu_pod])
def test_a_wrong_type_is_named_by_its_path(
    base: Any, parents: tuple[str, ...], key: str, value: Any, path: str
) -> None:
    pod = changed(base(), *parents)
    target = pod
    for parent in parents:
        target = target[parent]
    target[key] = value
    decision = answer(creation(pod))
    assert codes(decision) == [reasons.OBJECT_MALFORMED]
    assert decision.denial is not None
    assert decision.denial.violations[0].path == path
    assert decision.denial.status == 400
    assert decision.warnings == ()
    assert decision.patch == ()


@pytest.mark.parametrize(
    ("parents", "key"), [(parents, key) for parents, key, _, path in WRONG if "[" not in path]
)
def test_null_is_right_everywhere(parents: tuple[str, ...], key: str) -> None:
    """The API machinery reads null as absent; nothing may break on it."""
    pod = changed(a_card_pod(), *parents)
    target = pod
    for parent in parents:
        target = target[parent]
    target[key] = None
    assert reasons.OBJECT_MALFORMED not in codes(answer(creation(pod)))


@pytest.mark.parametrize("amount", ["1", 1, 1.5, "x", None, -1, 10**30, ""])
def test_whether_a_quantity_can_be_read_is_no_question_of_its_type(amount: Any) -> None:
    pod = a_pod(limits={"cpu": amount})
    assert shapes.pod(pod) == ()


def test_thousands_of_wrong_fields_are_listed_shortly() -> None:
    pod = a_pod(containers=[{"name": 1}] * 1000)
    decision = answer(creation(pod))
    assert decision.denial is not None
    assert decision.denial.message.endswith("and 1 more")
