"""When a pod got its node and when it ended, by what its status says; in microseconds since 1970."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.objects import raw as read


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
        for each in read.sequence(status, "containerStatuses")
        if isinstance(each, dict)
    ]
    unready = [read.timestamp(each.get("lastTransitionTime")) for each in _conditions(status, "Ready")]
    return max(ends, default=0) or max(unready, default=0)


def _conditions(status: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    for each in read.sequence(status, "conditions"):
        if isinstance(each, dict) and each.get("type") == kind:
            yield each
