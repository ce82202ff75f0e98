"""The one patch that lifts a pod: gate away, placement narrowed, assignment recorded."""

from collections.abc import Mapping
from typing import Any, Final

from core import jsonpointer, names
from core.affinity import NodeRequirement, Patch, narrowing
from core.objects import Pod

_ANNOTATIONS: Final = ("metadata", "annotations")


def lift_patch(pod: Pod, requirement: NodeRequirement, records: Mapping[str, str]) -> Patch:
    """The JSON patch of a lift, to be applied to the pod exactly as it was seen.

    The tests make it fail for a pod that was re-created under the name, changed since, or lifted already.
    `requirement` is what the assigned card and the mGPU share require of a node, `records` the annotations that say for good
    what the pod was let in for. There is always one, by which the API server notes when the lift was (`Pod.released`): it
    notes what a writer has added, not what it took away.
    """
    gate = f"/spec/schedulingGates/{pod.gates.index(names.GATE)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version},
        {"op": "test", "path": f"{gate}/name", "value": names.GATE},
        {"op": "remove", "path": gate},
        *narrowing(pod.affinity, requirement),
        *_recorded(pod, records),
    ]


def _recorded(pod: Pod, records: Mapping[str, str]) -> list[dict[str, Any]]:
    if not pod.annotated:
        return [{"op": "add", "path": jsonpointer.render(*_ANNOTATIONS), "value": dict(records)}]
    return [
        {"op": "add", "path": jsonpointer.render(*_ANNOTATIONS, key), "value": text}
        for key, text in records.items()
    ]
