"""Bytes to requests, decisions to bytes."""

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import reasons
from core.admission.request import Add, Decision, Denial
from core.violations import Violation
from kube.admission import wire
from tests.unit.core.admission.samples import TENANT, a_pod
from tests.unit.webhook.reviews import UID, a_review, body, patch_of

GOOD = a_review(a_pod())


def without(key: str) -> dict[str, Any]:
    return {**GOOD, "request": {name: value for name, value in GOOD["request"].items() if name != key}}


def having(**fields: Any) -> dict[str, Any]:
    return {**GOOD, "request": {**GOOD["request"], **fields}}


def test_a_review_of_the_api_server_is_read_completely() -> None:
    request = wire.decode(body(having(subResource="status", dryRun=True)))
    assert (request.uid, request.group, request.resource, request.subresource) == (UID, "", "pods", "status")
    assert (request.kind, request.operation) == ("Pod", "CREATE")
    assert (request.namespace, request.name, request.username) == ("ml", "train", TENANT)
    assert (request.field_manager, request.dry_run) == ("kubectl-create", True)
    assert request.object == a_pod()
    assert request.old_object == {}


@pytest.mark.parametrize("key", ["namespace", "name", "userInfo", "options", "dryRun", "oldObject", "kind"])
def test_what_may_be_missing_may_be_missing(key: str) -> None:
    assert wire.decode(body(without(key))).resource == "pods"
    assert wire.decode(body(having(**{key: None}))).resource == "pods"


def test_a_review_written_by_hand_may_leave_out_the_resource() -> None:
    assert wire.decode(body(without("resource"))).resource == "pods"
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    request = wire.decode(body({**GOOD, "request": {**without("resource")["request"], "kind": kind}}))
    assert (request.group, request.resource) == ("apps", "deployments")


def test_a_deletion_needs_no_object() -> None:
    assert wire.decode(body(having(operation="DELETE", object=None))).object == {}


@pytest.mark.parametrize(
    ("review", "place"),
    [
        (None, "object"),
        ([], "object"),
        ("x", "object"),
        ({}, "kind"),
        ({**GOOD, "kind": "Pod"}, "kind"),
        ({**GOOD, "apiVersion": "admission.k8s.io/v1beta1"}, "v1beta1"),
        ({**GOOD, "apiVersion": None}, "apiVersion"),
        ({**GOOD, "apiVersion": ["x"]}, "apiVersion"),
        ({**GOOD, "request": None}, "request"),
        ({**GOOD, "request": []}, "request"),
        ({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}, "request"),
        (without("uid"), "request.uid"),
        (having(uid=""), "request.uid"),
        (having(uid=3), "request.uid"),
        (without("operation"), "request.operation"),
        (having(operation="PATCH"), "PATCH"),
        (having(operation="create"), "request.operation"),
        (having(operation=["CREATE"]), "request.operation"),
        (having(kind="Pod"), "request.kind"),
        (having(kind={"kind": 1}), "request.kind.kind"),
        (having(resource="pods"), "request.resource"),
        (having(resource={"group": ""}), "request.resource.resource"),
        (having(resource={"group": 1, "resource": "pods"}), "request.resource.group"),
        (having(resource=None, kind=None), "request.resource"),
        (having(subResource=1), "request.subResource"),
        (having(namespace=[]), "request.namespace"),
        (having(name={}), "request.name"),
        (having(userInfo="jane"), "request.userInfo"),
        (having(userInfo={"username": 1}), "request.userInfo.username"),
        (having(options=[]), "request.options"),
        (having(options={"fieldManager": 1}), "request.options.fieldManager"),
        (having(dryRun="true"), "request.dryRun"),
        (without("object"), "request.object"),
        (having(object=None), "request.object"),
        (having(object="x"), "request.object"),
        (having(operation="UPDATE"), "request.oldObject"),
        (having(operation="UPDATE", oldObject=[]), "request.oldObject"),
    ],
)
def test_a_malformed_envelope_is_refused_with_the_place(review: object, place: str) -> None:
    with pytest.raises(wire.ReviewError, match=place.replace(".", r"\.")) as caught:
        wire.decode(body(review))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"{", "JSON"),
        (b"{} {}", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b'{"kind": NaN}', "JSON"),
        (b'{"kind": "\\ud800"}', "JSON"),
        (b"[" * 5000, "JSON"),
        (b"\xef\xbb\xbf{}", "JSON"),
    ],
)
def test_bytes_that_are_no_json_are_refused(content: bytes, words: str) -> None:
    with pytest.raises(wire.ReviewError, match=words):
        wire.decode(content)


def test_the_text_of_an_error_quotes_nothing_long() -> None:
    """A wrong body may hold what nobody should find in a log."""
    with pytest.raises(wire.ReviewError) as caught:
        wire.decode(body({**GOOD, "apiVersion": "s3cret" * 1000}))
    assert len(str(caught.value)) < 200


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    with suppress(wire.ReviewError):
        wire.decode(content)


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(sorted(GOOD["request"])), odd, max_size=4))
def test_no_mutated_review_raises_anything_else(changes: dict[str, Any]) -> None:
    with suppress(wire.ReviewError):
        wire.decode(body(having(**changes)))


def test_an_allowed_request_is_answered_shortly() -> None:
    assert orjson.loads(wire.encode("u", Decision())) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_a_patch_and_warnings_are_carried() -> None:
    decision = Decision(patch=(Add(("a", "b/c"), ["ü"]),), warnings=("w1", "w2"))
    response = orjson.loads(wire.encode("u", decision))["response"]
    assert patch_of(response) == [{"op": "add", "path": "/a/b~1c", "value": ["ü"]}]
    assert response["warnings"] == ["w1", "w2"]
    assert response["allowed"] is True


def test_a_denial_has_code_reason_message_and_causes() -> None:
    violation = Violation(reasons.GATE_PROTECTED, "spec.schedulingGates", "is fixed", kind="Forbidden")
    decision = Decision(denial=Denial(403, "Forbidden", "Pod x is refused: ...", (violation,)))
    response = orjson.loads(wire.encode("u", decision))["response"]
    assert response == {
        "uid": "u",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": "Pod x is refused: ...",
            "details": {
                "causes": [
                    {"reason": "GateProtected", "field": "spec.schedulingGates", "message": "is fixed"}
                ]
            },
        },
    }
