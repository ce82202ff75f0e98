"""When a pod left the gate, got its node, and ended, by what the API server and its status say; in microseconds since 1970."""

from collections.abc import Mapping
from typing import Any, Final

from core import names
from core.objects import raw as read

_HAS_RUN: Final = frozenset({"running", "terminated"})


def scheduled_at(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    """When a pod got its node.

    The API server itself notes it with the bind; of a pod that came with its node the kubelet does, or has at least noted when
    it first saw it.
    """
    bound = [
        read.timestamp(each.get("lastTransitionTime"))
        for each in _conditions(status, "PodScheduled")
        if each.get("status") == "True"
    ]
    return (
        max(bound, default=0)
        or read.timestamp(status.get("startTime"))
        or read.timestamp(metadata.get("creationTimestamp"))
    )


def ended_at(status: Mapping[str, Any]) -> int:
    """When the last container of a pod that has ended did; where that is not said, when it ceased to be ready. 0 where neither is."""
    ends = [
        read.timestamp(read.mapping(each, "state", "terminated").get("finishedAt"))
        for each in read.listed(status, "containerStatuses")
        if isinstance(each, dict)
    ]
    unready = [read.timestamp(each.get("lastTransitionTime")) for each in _conditions(status, "Ready")]
    return max(ends, default=0) or max(unready, default=0)


def _conditions(status: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [
        each
        for each in read.listed(status, "conditions")
        if isinstance(each, dict) and each.get("type") == kind
    ]


def released_at(metadata: Mapping[str, Any]) -> int:
    """When the gate went, by what the API server notes of every writer, so that a new leader does not start over.

    A lift leaves an entry under our name. Where somebody else took the gate away, the last write of anybody stands for it:
    the scheduler's, as a rule, who looked at the pod and found no node. A pod that never had a gate could be bound from
    its creation.
    """
    ours, others = 0, 0
    for entry in read.listed(metadata, "managedFields"):
        if isinstance(entry, dict):
            time = read.timestamp(entry.get("time"))
            if entry.get("manager") == names.FIELD_MANAGER:
                ours = max(ours, time)
            else:
                others = max(others, time)
    gated_once = read.texts(metadata, "labels").get(names.MANAGED_LABEL) == "true"
    return ours or (others if gated_once else 0) or read.timestamp(metadata.get("creationTimestamp"))


def has_started(status: Mapping[str, Any]) -> bool:
    """Whether any container has run: from then on the node's driver has handed out its cards."""
    for key in ("initContainerStatuses", "containerStatuses"):
        for entry in read.listed(status, key):
            if isinstance(entry, dict) and (entry.get("started") is True or _has_run(entry)):
                return True
    return False


def _has_run(entry: Mapping[str, Any]) -> bool:
    return not _HAS_RUN.isdisjoint(read.part(entry, "state"))
