"""The one patch that lifts a pod: gate away, placement narrowed, assignment recorded."""

from collections.abc import Mapping, Sequence

from core import names
from core.objects import Pod
from core.plan.affinity import Expression, Patch, narrowing
from core.plan.placement import ShareRequirement


def lift_patch(
    pod: Pod, cards: Sequence[Expression], shares: ShareRequirement, record: Mapping[str, str]
) -> Patch:
    """The JSON patch of a lift, to be applied to the pod exactly as it was seen.

    The tests make it fail for a pod that was re-created under the name, changed since, or lifted already. `cards` are
    what the assigned card requires of a node, `shares` what the mGPU share requires, `record` the annotations to
    add.
    """
    gate = pod.gates.index(names.GATE)
    patch: Patch = [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version},
        {"op": "test", "path": f"/spec/schedulingGates/{gate}/name", "value": names.GATE},
        {"op": "remove", "path": f"/spec/schedulingGates/{gate}"},
    ]
    alternatives = [(*cards, *share) for share in shares.alternatives or ((),)]
    patch += narrowing(pod.affinity, [each for each in alternatives if each], (*cards, *shares.conjunction))
    # A pod with a card carries card.name, so the annotations map is there.
    patch += [
        {"op": "add", "path": f"/metadata/annotations/{escape(key)}", "value": value}
        for key, value in record.items()
    ]
    return patch


def escape(key: str) -> str:
    """A map key as one reference token of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
