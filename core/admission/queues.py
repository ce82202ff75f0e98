"""Queues: what cannot be read is refused where it is written.

A bad card quota that is stored all the same counts as no cards at all, and a bad device quota closes what it is about, so a
queue with one brings a whole team to a halt, as does one that nobody is admitted to by mistake; but it must not keep anybody from editing, closing or finalising that queue.
"""

from core.admission import capability, card_quota, levels, limits, queue_access, queue_deletion, shapes
from core.admission.request import DELETE, AdmissionRequest
from core.admission.view import Context
from core.dra import rules as dra_rules
from core.violations import Findings


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The quotas of a new queue and who may use it, what of that changes on a stored one, and what a deleted one is used for."""
    if request.operation == DELETE:
        queue_deletion.judge(request, found)
        return
    new, old, settings, view = request.object, request.old_object, context.settings, context.view
    malformed = shapes.annotated(new) or tuple(limits.device_quota(new, old))
    if malformed:
        found.violations += malformed
        return
    levels.judge(request, context, found)
    card_quota.judge(request, context, found)
    found.hints += capability.hints(request, context)
    if settings.features.dra:
        hierarchy = settings.dra.hierarchy
        found += dra_rules.judge(
            new, old, queues=view.queues, device_classes=view.device_classes, hierarchy=hierarchy
        )
    found.violations += queue_access.queue_violations(request.operation, new, old)
