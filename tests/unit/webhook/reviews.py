"""AdmissionReviews as the API server sends them."""

import base64
from typing import Any

import orjson

from tests.unit.core.admission.samples import TENANT

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def a_review(
    raw: dict[str, Any],
    group: str = "",
    resource: str = "pods",
    version: str = "v1",
    operation: str = "CREATE",
    **request: Any,
) -> dict[str, Any]:
    """A review of one object; entries of None are left out of the request."""
    fields = {
        "uid": UID,
        "kind": {"group": group, "version": version, "kind": raw.get("kind", "Pod")},
        "resource": {"group": group, "version": version, "resource": resource},
        "requestKind": {"group": group, "version": version, "kind": raw.get("kind", "Pod")},
        "requestResource": {"group": group, "version": version, "resource": resource},
        "name": "train",
        "namespace": "ml",
        "operation": operation,
        "userInfo": {"username": TENANT, "groups": ["system:authenticated"]},
        "object": raw,
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "kubectl-create",
        },
        **request,
    }
    present = {key: value for key, value in fields.items() if value is not None or key == "oldObject"}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": present}


def a_queue_status_review(old: dict[str, Any], new: dict[str, Any], manager: str = "") -> dict[str, Any]:
    """A review of a PUT of a queue's status."""
    return a_review(
        new,
        group="scheduling.volcano.sh",
        version="v1beta1",
        resource="queues",
        operation="UPDATE",
        subResource="status",
        oldObject=old,
        options={"fieldManager": manager} if manager else {},
    )


def body(review: object) -> bytes:
    """The bytes of a review."""
    return orjson.dumps(review)


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations in a response."""
    assert response["patchType"] == "JSONPatch"
    operations: list[dict[str, Any]] = orjson.loads(base64.b64decode(response["patch"], validate=True))
    return operations
