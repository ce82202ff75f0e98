"""The node: labels, allocatable, and whether the scheduler may use it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core import names
from core.objects import raw as read
from core.objects.taints import Taint, taints_of


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `allocatable` in thousandths; `annotations` only those of CrossQuota."""

    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    allocatable: Mapping[str, int]
    ready: bool
    unschedulable: bool
    taints: tuple[Taint, ...] = ()
    """Those that keep pods out."""


def opened(node: Node) -> Node:
    """The node as it is once it is ready and takes pods again; the taints that say otherwise go with that."""
    if node.ready and not node.unschedulable and not node.taints:
        return node
    lasting = tuple(taint for taint in node.taints if not taint.passing)
    return replace(node, ready=True, unschedulable=False, taints=lasting)


def project(raw: Mapping[str, Any]) -> Node:
    """The view of a v1 Node. A node whose status names no Ready condition counts as ready (a state file may lack it)."""
    metadata, spec = read.mapping(raw, "metadata"), read.mapping(raw, "spec")
    return Node(
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        labels=read.texts(metadata, "labels"),
        annotations={
            key: value
            for key, value in read.texts(metadata, "annotations").items()
            if key.startswith(names.CROSSQUOTA_PREFIX)
        },
        allocatable=read.resources(raw, "status", "allocatable"),
        ready=_ready(raw),
        unschedulable=spec.get("unschedulable") is True,
        taints=taints_of(spec),
    )


def _ready(raw: Mapping[str, Any]) -> bool:
    for condition in read.sequence(raw, "status", "conditions"):
        if isinstance(condition, dict) and condition.get("type") == "Ready":
            return condition.get("status") == "True"
    return True
