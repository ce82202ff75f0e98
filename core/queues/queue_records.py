"""Which pods have to get the record of their queue late: let in before there were such records, or past us."""

from typing import Any

from core import names
from core.objects import Pod
from core.queues.attribution import recorded
from core.stage import Stage, stage_of


def lacks_queue_record(pod: Pod) -> bool:
    """Whether a pod has been let in, holds quota, and does not say by which queue.

    A pod without gate that nobody let in gets its record with its node.
    """
    if recorded(pod) is not None:
        return False
    stage = stage_of(pod)
    return stage is Stage.ALLOCATED or (stage is Stage.RESERVED and let_in(pod))


def queue_record_patch(pod: Pod, queue: str) -> dict[str, Any]:
    """A merge patch that puts the queue on record, refused for any other state of the pod."""
    return {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
            "annotations": {names.CHARGED_QUEUE_ANNOTATION: queue},
        }
    }


def let_in(pod: Pod) -> bool:
    """Whether a pod without gate carries any record of ours, the queue or what a version before wrote."""
    if names.CHARGED_QUEUE_ANNOTATION in pod.annotations:
        return True
    return any(key.startswith(names.OWN_PREFIX) for key in pod.annotations)
