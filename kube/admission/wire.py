"""AdmissionReviews on the wire: bytes to a request value, a decision to bytes.

The envelope is checked by hand and the objects stay plain dictionaries: models would cost more than everything else
that is done with a request.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

import orjson

from core.admission import AdmissionRequest, Decision, Denial, resource_of
from core.objects import raw as read
from core.steps import Steps
from kube import bigjson

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

_WITH_OBJECT: Final = frozenset({"CREATE", "UPDATE"})
_OPERATIONS: Final = frozenset({*_WITH_OBJECT, "DELETE", "CONNECT"})
_SHOWN: Final = 80


class ReviewError(ValueError):
    """The bytes are no AdmissionReview that can be answered; `str()` names the place and what is wrong with it."""


def decode(body: bigjson.Body) -> AdmissionRequest:
    """The request in the body of an AdmissionReview of admission.k8s.io/v1. Raises ReviewError."""
    if not body.strip():
        raise ReviewError("the body is empty; it must be an AdmissionReview")
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ReviewError(f"the body is no JSON: {error.msg} at byte {error.pos}") from None
    return _reviewed(review)


def decode_large(body: bigjson.Body) -> Steps[AdmissionRequest]:
    """As `decode`, for a body whose reading takes longer than anybody may keep the event loop."""
    try:
        review = yield from bigjson.loads(body)
    except bigjson.JsonError as error:
        raise ReviewError(f"the body is no JSON: {error}") from None
    return _reviewed(review)


def _reviewed(review: object) -> AdmissionRequest:
    if not isinstance(review, dict):
        raise ReviewError("the body must be a JSON object")
    _expect(review, "kind", KIND)
    _expect(review, "apiVersion", API_VERSION)
    return _request(_object(review, "request"))


def _request(request: Mapping[str, Any]) -> AdmissionRequest:
    uid, operation = _text(request, "request.uid", "uid"), _text(request, "request.operation", "operation")
    if operation not in _OPERATIONS:
        raise ReviewError(
            f"request.operation must be one of CREATE, UPDATE, DELETE, CONNECT, not {_show(operation)}"
        )
    group, resource, kind = _what(request)
    return AdmissionRequest(
        uid=uid,
        group=group,
        resource=resource,
        kind=kind,
        operation=operation,
        subresource=_optional_text(request, "request.subResource", "subResource"),
        namespace=_optional_text(request, "request.namespace", "namespace"),
        name=_optional_text(request, "request.name", "name"),
        username=_optional_text(_optional(request, "userInfo"), "request.userInfo.username", "username"),
        field_manager=_optional_text(
            _optional(request, "options"), "request.options.fieldManager", "fieldManager"
        ),
        dry_run=_flag(request, "dryRun"),
        object=_body(request, "object", required=operation in _WITH_OBJECT),
        old_object=_body(request, "oldObject", required=operation == "UPDATE"),
    )


def _what(request: Mapping[str, Any]) -> tuple[str, str, str]:
    """Group, resource and kind. The API server always names the resource; a review written by hand may leave it out."""
    kind = _optional(request, "kind")
    name = _optional_text(kind, "request.kind.kind", "kind")
    if request.get("resource") is None:
        group = _optional_text(kind, "request.kind.group", "group")
        if not name:
            raise ReviewError("request.resource is missing, and so is request.kind")
        return group, resource_of(group, name), name
    resource = _optional(request, "resource")
    return (
        _optional_text(resource, "request.resource.group", "group"),
        _text(resource, "request.resource.resource", "resource"),
        name or "Object",
    )


def _expect(review: Mapping[str, Any], key: str, wanted: str) -> None:
    found = review.get(key)
    if found != wanted:
        raise ReviewError(f"{key} must be {wanted}, not {_show(found)}")


def _object(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    if not isinstance(value, dict):
        raise ReviewError(f"{key} must be an object, not {_show(value)}")
    return value


def _optional(request: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = request.get(key)
    if not isinstance(value, dict | None):
        raise ReviewError(f"request.{key} must be an object, not {_show(value)}")
    return read.mapping(value)


def _body(request: Mapping[str, Any], key: str, *, required: bool) -> Mapping[str, Any]:
    value = _optional(request, key)
    if required and request.get(key) is None:
        raise ReviewError(f"request.{key} is missing; a {request['operation']} carries it")
    return value


def _text(raw: Mapping[str, Any], path: str, key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value:
        raise ReviewError(f"{path} must be a text that is not empty, not {_show(value)}")
    return value


def _optional_text(raw: Mapping[str, Any], path: str, key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str | None):
        raise ReviewError(f"{path} must be a text, not {_show(value)}")
    return value or ""


def _flag(request: Mapping[str, Any], key: str) -> bool:
    value = request.get(key)
    if not isinstance(value, bool | None):
        raise ReviewError(f"request.{key} must be true or false, not {_show(value)}")
    return value is True


def _show(value: object) -> str:
    """A scalar as JSON, cut; of anything bigger only what it is: a body may hold what nobody should read in a log."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return cut(orjson.dumps(value).decode())


def cut(text: str) -> str:
    """The text, cut to a length that may stand in a one-line answer."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def encode(uid: str, decision: Decision) -> bytes:
    """The AdmissionReview that answers the request of this uid."""
    return orjson.dumps(
        {"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": uid, **_response(decision)}}
    )


def _response(decision: Decision) -> dict[str, Any]:
    response: dict[str, Any] = {"allowed": decision.allowed}
    if decision.denial is not None:
        response["status"] = _status(decision.denial)
    if decision.patch:
        patch = orjson.dumps([operation.as_json() for operation in decision.patch])
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    if decision.warnings:
        response["warnings"] = list(decision.warnings)
    return response


def _status(denial: Denial) -> dict[str, Any]:
    """A metav1.Status. The causes carry the codes of the catalogue for programs; people read the message."""
    causes = [
        {"reason": violation.code, "field": violation.path, "message": violation.detail}
        for violation in denial.violations
    ]
    return {
        "status": "Failure",
        "code": denial.status,
        "reason": denial.reason,
        "message": denial.message,
        "details": {"causes": causes},
    }
