"""Queues: what cannot be read is refused where it is written.

A bad card quota that is stored all the same counts as no cards at all, and a bad device quota closes what it is about, so a
queue with one brings a whole team to a halt, as does one that nobody is admitted to by mistake; but it must not keep anybody from editing, closing or finalising that queue.
"""

from core.admission import card_quota, queue_access, shapes
from core.admission.request import AdmissionRequest
from core.admission.view import Context
from core.dra import rules as dra_rules
from core.violations import Findings


def judge(request: AdmissionRequest, context: Context) -> Findings:
    """The quotas of a new queue and who may use it, and what of that changes on a stored one."""
    malformed = shapes.annotated(request.object)
    if malformed:
        return Findings(malformed)
    return (
        card_quota.judge(request, context)
        + _device_quota(request, context)
        + queue_access.queue_findings(request.operation, request.object, request.old_object)
    )


def _device_quota(request: AdmissionRequest, context: Context) -> Findings:
    settings, view = context.settings, context.view
    if not settings.features.dra:
        return Findings()
    return dra_rules.judge(
        request.object,
        request.old_object,
        queues=view.queues,
        device_classes=view.device_classes,
        hierarchy=settings.dra.hierarchy,
    )
