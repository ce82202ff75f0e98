"""Taking the gate off a pod that nobody has let in: what is done when cardquota goes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class Gated:
    """A pod at our gate, and the JSON patch that takes it off."""

    namespace: str
    name: str
    uid: str
    patch: list[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def gated(pod: Mapping[str, Any]) -> Gated | None:
    """Return how the gate comes off a pod as the API server sends it; None for a pod that does not wait at ours.

    The patch fails for another pod of that name, and where the gates have changed. Everything else of the pod stays: it was
    given no card and no queue, so nothing says that it was, and a cardquota that is installed later takes it for what
    started before it.
    """
    for place, gate in enumerate(read.sequence(pod, "spec", "schedulingGates")):
        if read.mapping(gate).get("name") == names.GATE:
            head, path = read.mapping(pod, "metadata"), f"/spec/schedulingGates/{place}"
            uid = read.text(head, "uid")
            patch = [
                {"op": "test", "path": "/metadata/uid", "value": uid},
                {"op": "test", "path": f"{path}/name", "value": names.GATE},
                {"op": "remove", "path": path},
            ]
            return Gated(read.text(head, "namespace"), read.text(head, "name"), uid, patch)
    return None
