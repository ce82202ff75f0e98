"""The field `spec.dra` of queues, added to a definition of Queue that does not have it.

No published definition has it, and the API server drops what a definition does not name, before anybody sees it: at every
write, of whatever part of the queue, for good.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core import jsonpointer
from core.dra.carriers import KINDS
from core.objects import raw as read

QUEUE_CRD: Final = "queues.scheduling.volcano.sh"

_FIELD: Final = "dra"
_QUANTITY: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"

# A null in one of these maps would be dropped before anybody sees it, and would then mean "not limited"; as something that
# may be null it is kept, and the rule beside it refuses it. The sizes bound what the rules can cost.
_CAPACITY: Final[Mapping[str, Any]] = {
    "type": "object",
    "maxProperties": 64,
    "additionalProperties": {
        "nullable": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": _QUANTITY,
    },
    "x-kubernetes-validations": [
        {
            "rule": "self.all(dimension, self[dimension] != null)",
            "message": "a capacity must not be null; leave it out to set no limit",
        }
    ],
}
_DEVICES: Final[Mapping[str, Any]] = {
    "type": "object",
    "maxProperties": 256,
    "additionalProperties": {
        "type": "object",
        "nullable": True,
        "required": ["count"],
        "properties": {"count": {"type": "integer", "format": "int64", "minimum": 0}, "capacity": _CAPACITY},
    },
    "x-kubernetes-validations": [
        {
            "rule": "self.all(class, self[class] != null)",
            "message": "an entry of a DeviceClass must not be null; leave it out to set no limit",
        }
    ],
}
SPEC_DRA: Final[Mapping[str, Any]] = {"type": "object", "properties": dict.fromkeys(KINDS, _DEVICES)}
"""The schema of `spec.dra`."""


@dataclass(frozen=True, slots=True)
class QueueDefinition:
    """The definition of Queue as it is stored; `extension` is the JSON patch that adds the field, empty when it is there."""

    uid: str
    extension: Sequence[Mapping[str, Any]]


def project(raw: Mapping[str, Any]) -> QueueDefinition:
    """The view of an apiextensions.k8s.io/v1 CustomResourceDefinition."""
    return QueueDefinition(read.text(read.mapping(raw, "metadata"), "uid"), extension(raw))


def missing(crd: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where `SPEC_DRA` has to be added to a raw CustomResourceDefinition; nothing for one that is not of Queue."""
    if read.text(read.mapping(crd, "metadata"), "name") != QUEUE_CRD:
        return
    for index, version in enumerate(read.sequence(crd, "spec", "versions")):
        spec = read.mapping(version, "schema", "openAPIV3Schema", "properties", "spec")
        properties = spec.get("properties")
        if isinstance(properties, dict) and _FIELD not in properties:
            schema = ("schema", "openAPIV3Schema", "properties", "spec", "properties", _FIELD)
            yield ("spec", "versions", str(index), *schema)


def extension(crd: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON patch that extends a stored definition, empty when it has the field.

    It fails where the versions are others by then.
    """
    patch: list[dict[str, Any]] = []
    for path in missing(crd):
        version = path[:3]
        name = read.text(read.sequence(crd, "spec", "versions")[int(path[2])], "name")
        patch += [
            {"op": "test", "path": jsonpointer.render(*version, "name"), "value": name},
            {"op": "add", "path": jsonpointer.render(*path), "value": SPEC_DRA},
        ]
    return patch
