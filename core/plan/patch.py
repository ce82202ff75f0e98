"""The one patch that lifts a pod: gate away, placement narrowed, assignment recorded."""

from typing import Any, Final

from core import jsonpointer, names
from core.affinity import NodeRequirement, Patch, narrowing
from core.objects import Pod

_ANNOTATIONS: Final = jsonpointer.render("metadata", "annotations")
_RECORD: Final = jsonpointer.render("metadata", "annotations", names.ASSIGNED_ANNOTATION)
_LIFTED: Final = jsonpointer.render("metadata", "annotations", names.LIFTED_ANNOTATION)


def lift_patch(pod: Pod, requirement: NodeRequirement, record: str) -> Patch:
    """The JSON patch of a lift, to be applied to the pod exactly as it was seen.

    The tests make it fail for a pod that was re-created under the name, changed since, or lifted already.
    `requirement` is what the assigned card and the mGPU share require of a node, `record` the text of the annotation
    about the assigned card; empty for a pod without one.
    """
    narrowed = narrowing(pod.affinity, requirement)
    gate = f"/spec/schedulingGates/{pod.gates.index(names.GATE)}"
    patch: Patch = [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version},
        {"op": "test", "path": f"{gate}/name", "value": names.GATE},
        {"op": "remove", "path": gate},
        *narrowed,
    ]
    if record:
        # A pod with a card carries card.name, so the annotations map is there.
        patch.append({"op": "add", "path": _RECORD, "value": record})
    elif pod.claims and not narrowed:
        patch.append(_trace(pod))
    return patch


def _trace(pod: Pod) -> dict[str, Any]:
    """The API server notes when a writer added something, but not when it took something away; see `Pod.released`."""
    if pod.annotated:
        return {"op": "add", "path": _LIFTED, "value": "true"}
    return {"op": "add", "path": _ANNOTATIONS, "value": {names.LIFTED_ANNOTATION: "true"}}
