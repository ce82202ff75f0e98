"""Raw objects and requests for admission tests, and a JSON patch interpreter for what admission answers."""

import copy
from collections.abc import Mapping
from typing import Any

from core import names
from core.admission.dispatch import creation_of, review
from core.admission.request import Add, AdmissionRequest, ClusterView, Decision
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from core.objects import node
from core.settings import Settings

CONTROLLER = "system:serviceaccount:cardquota-system:cardquota-controller"
TENANT = "jane"
GATE = {"name": names.GATE}
H200 = "NVIDIA-H200"


def a_pod(
    annotations: Mapping[str, Any] | None = None,
    *,
    limits: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    gated: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    """A pod `ml/train` with one container; `spec` goes over its spec."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "ml", "annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "main", "resources": {"limits": dict(limits or {})}}], **spec},
    }
    if labels is not None:
        pod["metadata"]["labels"] = dict(labels)
    if gated:
        pod["spec"]["schedulingGates"] = [GATE]
        pod["metadata"]["labels"] = {names.MANAGED_LABEL: "true", **(labels or {})}
    return pod


def a_card_pod(card: str = H200, resource: str = "nvidia.com/gpu", **more: Any) -> dict[str, Any]:
    """A pod that asks for one card."""
    annotations = {names.CARD_NAME_ANNOTATION: card, **more.pop("annotations", {})}
    return a_pod(annotations, limits={resource: "1"}, **more)


def an_mgpu_pod(**more: Any) -> dict[str, Any]:
    """A pod that asks for half an mGPU card."""
    return a_pod(
        more.pop("annotations", {}), limits={names.MGPU_CORE: "50", names.MGPU_MEMORY: "1024"}, **more
    )


def a_claim_pod(**more: Any) -> dict[str, Any]:
    """A pod with a ResourceClaim."""
    return a_pod(resourceClaims=[{"name": "dev", "resourceClaimTemplateName": "one-gpu"}], **more)


def a_queue(quota: str | None = None, *, status: Any = None, **metadata: Any) -> dict[str, Any]:
    """A queue `team-a`."""
    annotations = {} if quota is None else {names.CARD_QUOTA_ANNOTATION: quota}
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "team-a", "annotations": annotations, **metadata},
        "spec": {},
    }
    return queue if status is None else {**queue, "status": status}


def a_node(product: str = H200, resource: str = "nvidia.com/gpu", count: int = 8) -> dict[str, Any]:
    """A node with cards of one product."""
    return {
        "metadata": {
            "name": f"node-{product}".lower(),
            "labels": {f"{resource}.product": product, f"{resource}.memory": "143771"},
        },
        "status": {"allocatable": {resource: str(count), "cpu": "64"}},
    }


def a_view(*nodes: Mapping[str, Any]) -> ClusterView:
    """A view over these nodes, all listed."""
    inventory = Inventory({})
    for raw in nodes or (a_node(), a_node("Ascend910B", "huawei.com/Ascend910B")):
        inventory.put(node.project(raw))
    return ClusterView(inventory=inventory, queues={}, serving=DeviceClasses())


def creation(raw: Mapping[str, Any], username: str = TENANT) -> AdmissionRequest:
    """The request that creates an object."""
    request = creation_of(raw)
    assert request is not None
    return with_fields(request, uid="u1", username=username)


def update(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    username: str = TENANT,
    subresource: str = "",
    field_manager: str = "",
) -> AdmissionRequest:
    """The request that replaces one object by another."""
    return with_fields(
        creation(new, username),
        operation="UPDATE",
        old_object=old,
        subresource=subresource,
        field_manager=field_manager,
    )


def with_fields(request: AdmissionRequest, **fields: Any) -> AdmissionRequest:
    """A copy of the request with other fields."""
    present = {name: getattr(request, name) for name in AdmissionRequest.__slots__}
    return AdmissionRequest(**{**present, **fields})


def answer(
    request: AdmissionRequest, view: ClusterView | None = None, settings: Settings | None = None
) -> Decision:
    """The decision of all rules together."""
    return review(request, view or a_view(), settings or Settings(), controllers=frozenset({CONTROLLER}))


def codes(decision: Decision) -> list[str]:
    """The reason codes of a denial."""
    return [violation.code for violation in decision.denial.violations] if decision.denial else []


def settings(**sections: Any) -> Settings:
    """Settings with some sections given."""
    return Settings.model_validate(sections)


def changed(raw: Mapping[str, Any], *path: str, **entries: Any) -> dict[str, Any]:
    """A copy of the object with entries set below `path`; an entry of None is removed. Keys hold `/` as `__`."""
    result: dict[str, Any] = copy.deepcopy(dict(raw))
    target = result
    for key in path:
        target = target.setdefault(key, {})
    for key, value in entries.items():
        target.pop(key, None)
        if value is not None:
            target[key] = value
    return result


def annotated(raw: Mapping[str, Any], **annotations: Any) -> dict[str, Any]:
    """A copy with annotations changed."""
    return changed(raw, "metadata", "annotations", **annotations)


def patched(raw: Mapping[str, Any], patch: tuple[Add, ...]) -> dict[str, Any]:
    """What the API server makes of the object and the patch; fails where RFC 6902 fails."""
    result: dict[str, Any] = copy.deepcopy(dict(raw))
    for operation in patch:
        assert set(operation.as_json()) == {"op", "path", "value"}
        assert operation.as_json()["op"] == "add"
        parts = operation.pointer.split("/")[1:]
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
        target: Any = result
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        if isinstance(target, list):
            assert last == "-"
            target.append(copy.deepcopy(operation.value))
        else:
            assert isinstance(target, dict)
            target[last] = copy.deepcopy(operation.value)
    return result
