"""What a pod's own spec says about its node, one object for all pods that say the same."""

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from core.objects import raw as read

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


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

_shared: Final[WeakValueDictionary[bytes, NodeRules]] = WeakValueDictionary()


def read_rules(spec: Mapping[str, Any]) -> tuple[NodeRules, Mapping[str, Any]]:
    """The rules of a pod's spec, and its affinity; what the two have in common is kept once for all pods alike."""
    affinity = read.mapping(spec, "affinity")
    node_affinity = read.mapping(affinity, "nodeAffinity")
    required = read.mapping(node_affinity, REQUIRED)
    rules = _rules(read.texts(spec, "nodeSelector"), required)
    if required:
        affinity = {**affinity, "nodeAffinity": {**node_affinity, REQUIRED: rules.required}}
    return rules, affinity


def _rules(selector: Mapping[str, str], required: Mapping[str, Any]) -> NodeRules:
    """The rules that say this. Rules of a megabyte cost a millisecond."""
    if not selector and not required:
        return ANYWHERE
    try:
        key = orjson.dumps((selector, required), option=orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        # A file may hold what no API server stores.
        return NodeRules(selector, required)
    if b"null" in key:
        # What is no number has become a null as well.
        return NodeRules(selector, required)
    rules = _shared.get(key)
    if rules is None:
        rules = _shared[key] = NodeRules(selector, required)
    return rules
