"""Which pods have to get the records of queue and claims late: let in before there were such records, or past us."""

from collections.abc import Mapping
from typing import Any

from core import names
from core.objects import Pod, group_key
from core.queues.attribution import recorded
from core.queues.ledger import Ledger
from core.stage import Stage, Stages


def lacks_queue_record(pod: Pod, stages: Stages) -> bool:
    """Whether a pod has been let in, holds quota, and does not say by which queue.

    A pod without gate that nobody let in gets its record with its node.
    """
    if recorded(pod) is not None:
        return False
    stage = stages.of(pod)
    return stage is Stage.ALLOCATED or (stage is Stage.RESERVED and pod.let_in)


def late_records(pod: Pod, ledger: Ledger) -> dict[str, str]:
    """The annotations that a pod has to get late: its queue, which is fixed in the books with that, and the claims it runs with.

    Those would be out of sight otherwise as soon as somebody takes them away, and the pod runs on with the devices.
    """
    found: dict[str, str] = {}
    if lacks_queue_record(pod, ledger.stages):
        found[names.CHARGED_QUEUE_ANNOTATION] = ledger.fix_queue(pod)
        found |= gang_record(pod)
    if pod.claims and ledger.stages.of(pod) is Stage.ALLOCATED:
        claims = ledger.devices.late_record(pod)
        found |= {names.CLAIMS_ANNOTATION: claims} if claims else {}
    return found


def gang_record(pod: Pod) -> dict[str, str]:
    """The annotation that says with whom a pod starts that comes past our gate.

    Empty of one that starts with a PodGroup of Volcano, or alone. Of one that was let in there is one already, or it was so then.
    """
    key = pod.group_key
    recorded = key and not pod.let_in and (pod.gang is not None or group_key.is_kubernetes(key))
    return {names.GANG_OF_ANNOTATION: key} if recorded else {}


def records_patch(pod: Pod, records: Mapping[str, str]) -> dict[str, Any]:
    """A merge patch that puts annotations on record, refused for any other state of the pod."""
    return {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
            "annotations": dict(records),
        }
    }
