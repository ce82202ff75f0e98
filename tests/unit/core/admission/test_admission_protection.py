"""Pod updates: what only the controller may change."""

from typing import Any

import pytest

from core import names, reasons
from tests.unit.core.admission.samples import (
    CONTROLLER,
    GATE,
    H200,
    TENANT,
    a_card_pod,
    a_claim_pod,
    a_pod,
    an_mgpu_pod,
    annotated,
    answer,
    changed,
    codes,
    settings,
    update,
)

AGENT = "system:serviceaccount:vke:agent"
WAITING = a_card_pod(gated=True)
LIFTED = annotated(
    changed(WAITING, "spec", schedulingGates=None), **{names.ASSIGNED_ANNOTATION: '{"NVIDIA-H200": 1}'}
)
PLAIN = a_pod()
MGPU = an_mgpu_pod(annotations={names.MGPU_POLICY_KEY: "fixed-share"}, gated=True)
BOUND_MGPU = annotated(
    changed(MGPU, "spec", schedulingGates=None, nodeName="n1"), **{f"{names.GPU_INDEX_PREFIX}main": "0"}
)

RECORD, FIXED, GATED = reasons.RECORD_PROTECTED, reasons.FIELD_FIXED, reasons.GATE_PROTECTED

CASES = [
    # The gate.
    (WAITING, changed(WAITING, "spec", schedulingGates=None), GATED),
    (WAITING, changed(WAITING, "spec", schedulingGates=[]), GATED),
    (WAITING, changed(WAITING, "spec", schedulingGates=[{"name": "x"}]), GATED),
    (WAITING, changed(WAITING, "spec", schedulingGates=[{"name": "x"}, GATE]), None),
    # Records.
    (LIFTED, annotated(LIFTED, **{names.ASSIGNED_ANNOTATION: '{"K80": 1}'}), RECORD),
    (LIFTED, annotated(LIFTED, **{names.ASSIGNED_ANNOTATION: None}), RECORD),
    (WAITING, annotated(WAITING, **{names.ASSIGNED_ANNOTATION: "{}"}), RECORD),
    (PLAIN, annotated(PLAIN, **{"cardquota.io/x": ""}), RECORD),
    (BOUND_MGPU, annotated(BOUND_MGPU, **{f"{names.GPU_INDEX_PREFIX}main": "1"}), RECORD),
    (BOUND_MGPU, annotated(BOUND_MGPU, **{names.ASSUMED_ANNOTATION: "true"}), RECORD),
    (WAITING, changed(WAITING, "metadata", "labels", **{names.MANAGED_LABEL: None}), RECORD),
    (WAITING, changed(WAITING, "metadata", "labels", **{names.MANAGED_LABEL: "false"}), RECORD),
    (PLAIN, changed(PLAIN, "metadata", "labels", **{names.MANAGED_LABEL: "true"}), RECORD),
    # The card name.
    (WAITING, annotated(WAITING, **{names.CARD_NAME_ANNOTATION: "NVIDIA-H200|NVIDIA-H800"}), None),
    (WAITING, annotated(WAITING, **{names.CARD_NAME_ANNOTATION: None}), None),
    (LIFTED, annotated(LIFTED, **{names.CARD_NAME_ANNOTATION: "K80"}), FIXED),
    (LIFTED, annotated(LIFTED, **{names.CARD_NAME_ANNOTATION: None}), FIXED),
    (PLAIN, annotated(PLAIN, **{names.CARD_NAME_ANNOTATION: H200}), FIXED),
    # What an mGPU pod asks for, at any time.
    (MGPU, annotated(MGPU, **{names.MGPU_POLICY_KEY: "native-burst-share"}), FIXED),
    (MGPU, annotated(MGPU, **{names.MGPU_MULTIPLE_ANNOTATION: "1"}), FIXED),
    (BOUND_MGPU, annotated(BOUND_MGPU, **{names.MGPU_POLICY_KEY: None}), FIXED),
    (PLAIN, annotated(PLAIN, **{names.MGPU_POLICY_KEY: "x", names.MGPU_MULTIPLE_ANNOTATION: "1"}), None),
    # The queue.
    (WAITING, annotated(WAITING, **{names.QUEUE_NAME_ANNOTATION: "q2"}), None),
    (WAITING, annotated(WAITING, **{names.JOB_QUEUE_ANNOTATION: "q2"}), None),
    (LIFTED, annotated(LIFTED, **{names.QUEUE_NAME_ANNOTATION: "q2"}), FIXED),
    (LIFTED, annotated(LIFTED, **{names.JOB_QUEUE_ANNOTATION: "q2"}), FIXED),
    (PLAIN, annotated(PLAIN, **{names.QUEUE_NAME_ANNOTATION: "q2"}), None),
    (a_claim_pod(), a_claim_pod(annotations=None) | {}, None),
    # The group: Volcano sets it after the pod exists, and nobody moves it once the pod is charged.
    (LIFTED, annotated(LIFTED, **{names.GROUP_NAME_ANNOTATION: "g1"}), None),
    (
        annotated(LIFTED, **{names.GROUP_NAME_ANNOTATION: "g1"}),
        annotated(LIFTED, **{names.GROUP_NAME_ANNOTATION: "g2"}),
        FIXED,
    ),
    (annotated(LIFTED, **{names.GROUP_NAME_ANNOTATION: "g1"}), LIFTED, FIXED),
    (
        annotated(WAITING, **{names.GROUP_NAME_ANNOTATION: "g1"}),
        annotated(WAITING, **{names.GROUP_NAME_ANNOTATION: "g2"}),
        None,
    ),
    (
        annotated(PLAIN, **{names.GROUP_NAME_ANNOTATION: "g1"}),
        annotated(PLAIN, **{names.GROUP_NAME_ANNOTATION: "g2"}),
        None,
    ),
    # Other people's business.
    (LIFTED, annotated(LIFTED, **{"example.com/note": "hello"}), None),
    (LIFTED, changed(LIFTED, "metadata", "labels", app="x"), None),
    (LIFTED, changed(LIFTED, "metadata", finalizers=["x"]), None),
    (BOUND_MGPU, changed(BOUND_MGPU, "status", phase="Running"), None),
    (LIFTED, LIFTED, None),
]


@pytest.mark.parametrize("subresource", ["", "status"])
@pytest.mark.parametrize(("old", "new", "code"), CASES)
def test_protected_things_are_refused_and_all_else_passes(
    old: dict[str, Any], new: dict[str, Any], code: str | None, subresource: str
) -> None:
    """The status subresource carries annotations and labels as well, so it must not be a way round."""
    decision = answer(update(old, new, subresource=subresource))
    assert set(codes(decision)) == ({code} if code else set())
    assert decision.patch == ()
    if decision.denial is not None:
        assert (decision.denial.status, decision.denial.reason) == (403, "Forbidden")


@pytest.mark.parametrize(("old", "new", "code"), CASES)
def test_the_controller_may_do_all_of_it(old: dict[str, Any], new: dict[str, Any], code: str | None) -> None:
    del code
    assert RECORD not in (found := codes(answer(update(old, new, CONTROLLER))))
    assert not {FIXED, GATED} & set(found)


@pytest.mark.parametrize("username", ["", "admin", "system:masters", "kubernetes-admin", f"{CONTROLLER}x"])
def test_nobody_else_counts_as_the_controller(username: str) -> None:
    assert codes(answer(update(WAITING, changed(WAITING, "spec", schedulingGates=None), username))) == [GATED]


def test_node_agents_write_what_belongs_to_mgpu_and_nothing_else() -> None:
    agents = settings(mgpu={"nodeAgents": [AGENT]})
    result = annotated(
        BOUND_MGPU, **{f"{names.GPU_INDEX_PREFIX}main": "1", names.ASSUMED_ANNOTATION: "false"}
    )
    assert answer(update(BOUND_MGPU, result, AGENT), settings=agents).allowed
    assert codes(answer(update(BOUND_MGPU, result, AGENT))) == [RECORD, RECORD]
    policy = annotated(BOUND_MGPU, **{names.MGPU_POLICY_KEY: "native-burst-share"})
    assert answer(update(BOUND_MGPU, policy, AGENT), settings=agents).allowed
    assert codes(answer(update(BOUND_MGPU, policy, AGENT))) == [FIXED]
    card = annotated(LIFTED, **{names.CARD_NAME_ANNOTATION: "K80"})
    assert codes(answer(update(LIFTED, card, AGENT), settings=agents)) == [FIXED]
    assigned = annotated(BOUND_MGPU, **{names.ASSIGNED_ANNOTATION: "{}"})
    assert codes(answer(update(BOUND_MGPU, assigned, AGENT), settings=agents)) == [RECORD]
    ungated = changed(WAITING, "spec", schedulingGates=None)
    assert codes(answer(update(WAITING, ungated, AGENT), settings=agents)) == [GATED]


def test_every_touched_record_is_named_in_order() -> None:
    new = annotated(BOUND_MGPU, **{names.ASSUMED_ANNOTATION: "x", "cardquota.io/b": "", "cardquota.io/a": ""})
    decision = answer(update(BOUND_MGPU, new))
    assert decision.denial is not None
    assert [violation.path for violation in decision.denial.violations] == [
        "metadata.annotations[cardquota.io/a]",
        "metadata.annotations[cardquota.io/b]",
        f"metadata.annotations[{names.ASSUMED_ANNOTATION}]",
    ]


def test_the_gate_message_names_who_asked() -> None:
    decision = answer(update(WAITING, changed(WAITING, "spec", schedulingGates=None)))
    assert decision.denial is not None
    assert TENANT in decision.denial.message
    assert names.GATE in decision.denial.message


def test_a_new_card_name_is_judged_like_that_of_a_new_pod() -> None:
    broken = annotated(WAITING, **{names.CARD_NAME_ANNOTATION: "A||B"})
    assert codes(answer(update(WAITING, broken))) == [reasons.CARD_NAME_MALFORMED]
    assert codes(answer(update(WAITING, broken, CONTROLLER))) == [reasons.CARD_NAME_MALFORMED]
    mixed = annotated(WAITING, **{names.CARD_NAME_ANNOTATION: f"{H200}|Ascend910B"})
    assert reasons.CARD_RESOURCES_DIFFER in codes(answer(update(WAITING, mixed)))


def test_a_bad_card_name_that_was_stored_stays_editable_otherwise() -> None:
    stored = annotated(WAITING, **{names.CARD_NAME_ANNOTATION: "A||B"})
    assert answer(update(stored, annotated(stored, **{"example.com/x": "y"}))).allowed


def test_malformed_metadata_in_an_update_is_named() -> None:
    new = changed(PLAIN, "metadata", annotations=["x"])
    assert codes(answer(update(PLAIN, new))) == [reasons.OBJECT_MALFORMED]


def test_a_null_annotation_counts_as_none() -> None:
    assert answer(update(PLAIN, changed(PLAIN, "metadata", "annotations", x=None))).allowed
    nulls = changed(PLAIN, "metadata", annotations={names.ASSUMED_ANNOTATION: None})
    assert answer(update(PLAIN, nulls)).allowed
