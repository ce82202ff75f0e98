"""An admission request passed on from one replica to another, and the answer brought back.

The same AdmissionReview travels on: what the other replica sees is what the API server sent here.
"""

import base64
import binascii
from typing import Any, Final

import orjson

from core import jsonpointer
from core.admission.request import Add, AdmissionRequest, Decision, Denial
from core.violations import Violation
from kube.admission.wire import API_VERSION, KIND


class AnswerError(ValueError):
    """The bytes are no answer to an admission request."""


_EMPTY: Final[dict[str, Any]] = {}


def encode_request(request: AdmissionRequest) -> bytes:
    """The AdmissionReview that makes this request."""
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
