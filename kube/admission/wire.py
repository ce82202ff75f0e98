"""AdmissionReviews on the wire: bytes to a request value, a decision to bytes; and one passed on to another replica.

The envelope is checked by hand and the objects stay plain dictionaries: models would cost more than everything else
that is done with a request.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Final

import orjson

from core import jsonpointer
from core.admission.dispatch import CONSTANT, resource_of
from core.admission.request import Add, AdmissionRequest, Decision, Denial
from core.objects import raw as read
from core.steps import Steps
from core.violations import Violation
from kube import bigjson

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

_WITH_OBJECT: Final = frozenset({"CREATE", "UPDATE"})
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_NOTHING: Final[dict[str, Any]] = {}
_NAMES: Final = frozenset({str})
_TEXTS: Final = frozenset({str, NoneType})
_OBJECTS: Final = frozenset({dict, NoneType})
_NAME: Final = "a text that is not empty"
_TEXT: Final = "a text"
_OBJECT: Final = "an object"
_FLAG: Final = "true or false"
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    _NAME: (str,),
    _TEXT: (str, NoneType),
    _OBJECT: (dict, NoneType),
    _FLAG: (bool, NoneType),
}
_FIELDS: Final = (
    ("uid", _NAME),
    ("operation", _NAME),
    ("kind", _OBJECT),
    ("kind.kind", _TEXT),
    ("resource", _OBJECT),
    ("subResource", _TEXT),
    ("namespace", _TEXT),
    ("name", _TEXT),
    ("userInfo", _OBJECT),
    ("userInfo.username", _TEXT),
    ("options", _OBJECT),
    ("options.fieldManager", _TEXT),
    ("dryRun", _FLAG),
    ("object", _OBJECT),
    ("oldObject", _OBJECT),
)
_SHOWN: Final = 80
_HEAD: Final = orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": ""}}).removesuffix(
    b'""}}'
)
_EMPTY: Final[dict[str, Any]] = {}


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
    return _request(review)


def decode_large(body: bigjson.Body) -> Steps[AdmissionRequest]:
    """As `decode`, for a body whose reading takes longer than anybody may keep the event loop."""
    try:
        review = yield from bigjson.loads(body)
    except bigjson.JsonError as error:
        raise ReviewError(f"the body is no JSON: {error}") from None
    return _request(review)


def _request(review: Any) -> AdmissionRequest:
    """Reads every field straight; which of them is not as it has to be, `_faults` finds out once one is not."""
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict):
        raise ReviewError(next(_faults(review)))
    get = request.get
    kind, resource, user, options = get("kind"), get("resource"), get("userInfo"), get("options")
    new, old, dry_run = get("object"), get("oldObject"), get("dryRun")
    if not _OBJECTS.issuperset(map(type, (kind, resource, user, options, new, old))):
        raise ReviewError(next(_faults(review)))
    kind = kind or _NOTHING
    what = kind if resource is None else resource
    # The API server always names the resource; a review written by hand may leave it out.
    uid, operation, name = get("uid"), get("operation"), what.get("kind" if resource is None else "resource")
    texts = (
        what.get("group"),
        kind.get("kind"),
        get("subResource"),
        get("namespace"),
        get("name"),
        (user or _NOTHING).get("username"),
        (options or _NOTHING).get("fieldManager"),
    )
    if not (
        review.get("kind") == KIND
        and review.get("apiVersion") == API_VERSION
        and _NAMES.issuperset(map(type, (uid, operation, name)))
        and (uid and name and operation in _OPERATIONS)
        and _TEXTS.issuperset(map(type, texts))
        and (new is not None or operation not in _WITH_OBJECT)
        and (old is not None or operation != "UPDATE")
        and (dry_run is None or isinstance(dry_run, bool))
    ):
        raise ReviewError(next(_faults(review)))
    group, kind_name, subresource, namespace, object_name, username, field_manager = texts
    return AdmissionRequest(
        uid,
        group or "",
        resource_of(group or "", name) if resource is None else name,
        kind_name or "Object",
        operation,
        subresource or "",
        namespace or "",
        object_name or "",
        username or "",
        field_manager or "",
        dry_run is True,
        new or _NOTHING,
        old or _NOTHING,
    )


def _faults(review: object) -> Iterator[str]:
    """What is wrong with a review, in the order of its fields."""
    if not isinstance(review, dict):
        yield "the body must be a JSON object"
        return
    for key, wanted in (("kind", KIND), ("apiVersion", API_VERSION)):
        if review.get(key) != wanted:
            yield f"{key} must be {wanted}, not {_show(review.get(key))}"
    request = review.get("request")
    if not isinstance(request, dict):
        yield f"request must be an object, not {_show(request)}"
        return
    what = "kind" if request.get("resource") is None else "resource"
    for path, wanted in (*_FIELDS[:5], (f"{what}.group", _TEXT), (f"{what}.{what}", _NAME), *_FIELDS[5:]):
        *parents, last = path.split(".")
        value = read.mapping(request, *parents).get(last)
        if not isinstance(value, _TYPES[wanted]) or (wanted == _NAME and not value):
            if path == "kind.kind" and wanted == _NAME:
                yield "request.resource is missing, and so is request.kind"
            yield f"request.{path} must be {wanted}, not {_show(value)}"
        elif path == "operation" and value not in _OPERATIONS:
            yield f"request.operation must be one of {', '.join(_OPERATIONS)}, not {_show(value)}"
    for key, operations in (("object", _WITH_OBJECT), ("oldObject", {"UPDATE"})):
        if request.get(key) is None and request.get("operation") in operations:
            yield f"request.{key} is missing; a {request['operation']} carries it"


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
    said = _ENCODED.get(id(decision)) or _response(decision)
    return b"%b%b,%b}}" % (_HEAD, orjson.dumps(uid), said)


def _response(decision: Decision) -> bytes:
    """The members of a response beside its uid."""
    response: dict[str, Any] = {"allowed": decision.allowed}
    if decision.denial is not None:
        response["status"] = _status(decision.denial)
    if decision.patch:
        patch = orjson.dumps([operation.as_json() for operation in decision.patch])
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    if decision.warnings:
        response["warnings"] = list(decision.warnings)
    return orjson.dumps(response)[1:-1]


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


_ENCODED: Final = {id(decision): _response(decision) for decision in CONSTANT}
"""What is answered to nearly every request, encoded beforehand; known by identity, as these live as long as the process."""


class AnswerError(ValueError):
    """The bytes are no answer to an admission request."""


def encode_request(request: AdmissionRequest) -> bytes:
    """The AdmissionReview that makes this request: what another replica sees is what the API server sent here."""
    return orjson.dumps(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "request": {
                "uid": request.uid,
                "kind": {"group": request.group, "version": "v1", "kind": request.kind},
                "resource": {"group": request.group, "version": "v1", "resource": request.resource},
                "subResource": request.subresource,
                "operation": request.operation,
                "namespace": request.namespace,
                "name": request.name,
                "userInfo": {"username": request.username},
                "dryRun": request.dry_run,
                "object": dict(request.object),
            },
        }
    )


def decode_answer(body: bytes) -> Decision:
    """The decision in the answer that `wire.encode` made. Raises AnswerError."""
    try:
        response = orjson.loads(body)["response"]
        if response["allowed"]:
            patch = orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else []
            operations = tuple(
                Add(jsonpointer.parse(operation["path"]), operation["value"]) for operation in patch
            )
            return Decision(patch=operations, warnings=tuple(response.get("warnings", ())))
        status = response["status"]
        return Decision(denial=_denial(status))
    except (orjson.JSONDecodeError, binascii.Error, LookupError, TypeError, AttributeError) as error:
        raise AnswerError(f"no answer to an admission request: {type(error).__name__}") from error


def _denial(status: dict[str, Any]) -> Denial:
    causes = status.get("details", _EMPTY).get("causes", ())
    violations = tuple(
        Violation(cause["reason"], cause["field"], cause["message"], "Forbidden") for cause in causes
    )
    return Denial(int(status["code"]), status["reason"], status["message"], violations)
