"""What a pod's own spec says about its node, one object for all pods that say the same; and whether other things rule nodes out."""

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from core.objects import raw as read

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ANYWHERE: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "hostPath", "image", "name", "nfs", "projected", "secret"}
)
"""Volumes that are to be had on every node alike."""


class NodeRules:
    """A `nodeSelector` and the required node affinity, as they stand in a spec.

    Compared by identity: `read_rules` gives pods with equal rules the same object for as long as one of them has it, so what
    is found out for one of them holds for all. `selector` is not to be changed, nor anything in `required`.
    """

    __slots__ = ("__weakref__", "required", "selector")

    def __init__(self, selector: Mapping[str, str], required: Mapping[str, Any]) -> None:
        self.selector = selector
        self.required = required

    @property
    def anywhere(self) -> bool:
        """Whether nothing is said, so that every node will do."""
        return not self.selector and not self.required


ANYWHERE: Final = NodeRules({}, {})

_NULLS: Final = (b":null", b"[null", b",null")
"""How a null stands in JSON; only a text that holds such a mark itself is taken for one."""

_shared: Final[WeakValueDictionary[bytes, NodeRules]] = WeakValueDictionary()


def read_rules(spec: Mapping[str, Any]) -> tuple[NodeRules, Mapping[str, Any]]:
    """The rules of a pod's spec, and its affinity; what the two have in common is kept once for all pods alike."""
    affinity = read.part(spec, "affinity")
    node_affinity = read.part(affinity, "nodeAffinity")
    required = read.part(node_affinity, REQUIRED)
    rules = _rules(read.texts(spec, "nodeSelector"), required)
    if required:
        affinity = {**affinity, "nodeAffinity": {**node_affinity, REQUIRED: rules.required}}
    return rules, affinity


def _rules(selector: Mapping[str, str], required: Mapping[str, Any]) -> NodeRules:
    """The rules that say this. Rules of a megabyte cost a millisecond, and five where they are nothing but short texts."""
    if not selector and not required:
        return ANYWHERE
    try:
        key = orjson.dumps((selector, required), option=orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        # A file may hold what no API server stores.
        return NodeRules(selector, required)
    if b"null" in key and any(null in key for null in _NULLS):
        # What is no number has become a null as well.
        return NodeRules(selector, required)
    rules = _shared.get(key)
    if rules is None:
        rules = _shared[key] = NodeRules(selector, required)
    return rules


def ruled_elsewhere(spec: Mapping[str, Any], affinity: Mapping[str, Any]) -> bool:
    """Whether it depends on other pods, on storage, on ports of the host or on devices which node will do."""
    return (
        any(read.mapping(affinity, kind).get(REQUIRED) for kind in ("podAffinity", "podAntiAffinity"))
        or any(_spreads(raw) for raw in read.sequence(spec, "topologySpreadConstraints"))
        or bool(read.sequence(spec, "resourceClaims"))
        or any(
            isinstance(raw, dict) and not raw.keys() <= _ANYWHERE for raw in read.sequence(spec, "volumes")
        )
        or any(
            isinstance(port, dict) and port.get("hostPort")
            for kind in ("containers", "initContainers")
            for container in read.sequence(spec, kind)
            for port in read.sequence(container, "ports")
        )
    )


def _spreads(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("whenUnsatisfiable") != "ScheduleAnyway"
