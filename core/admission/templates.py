"""The rules that a pod and the template of a pod share."""

from collections.abc import Mapping
from typing import Final

from core import names, reasons
from core.admission import gangs, limits, outlook, queue_access
from core.admission.asks import asks_ours
from core.admission.destination import Destination, destination_of
from core.admission.request import AdmissionRequest, Context
from core.cards import rules as card_rules
from core.crossquota import quota as crossquota
from core.mgpu import rules as mgpu_rules
from core.objects import raw as read
from core.objects.draft import Draft
from core.violations import Findings, Violation

TOLD: Final = 100
"""Of more records in one object nobody reads."""


def namespace_of(request: AdmissionRequest) -> str:
    """Where the object under review is, and so where its pods will be; empty for the default namespace."""
    return request.namespace or read.text(read.mapping(request.object, "metadata"), "namespace")


def judge(draft: Draft, context: Context, found: Findings) -> None:
    """Every rule about what a new pod asks for.

    Records are protected whatever features are on: a forged one would be believed as soon as its feature is. Whoever
    schedules the pods, the queue that they are for is open to their namespace, or not.
    """
    destination = judge_asked(draft, context, found)
    if not draft.texts.keys().isdisjoint(names.GANG_KEYS):
        gangs.judge(draft, context, found)
    if draft.spec.get("schedulingGroup"):
        gangs.judge_scheduling_group(draft, context, found)
    for key in names.records(draft.annotations)[:TOLD]:
        detail, value = "is set by the controller only, leave it out", draft.annotations[key]
        path = draft.path_of(key)
        found.violations.append(Violation(reasons.RECORD_PROTECTED, path, detail, "Forbidden", value))
    if destination is not None and context.view.namespaces is not None:
        queue_access.judge_pod(draft, destination, context, found)


def judge_asked(draft: Draft, context: Context, found: Findings) -> Destination | None:
    """The rules of the features that are on; nothing was found yet. Returns the way of the pod where it is known.

    Those of mGPU for a scheduler of ours, since nobody else knows it, and for a pod that comes with its node: no scheduler
    and no Binding will ever have a say about that.
    """
    settings, queues = context.settings, context.view.queues
    features, ours = settings.features, draft.scheduler in settings.scheduler_names
    served: Mapping[str, frozenset[str]] = {}
    if features.cards:
        seen, policy = context.view.inventory, settings.cards.pods_without_card_name
        known = context.inventory if seen is None else seen
        served = card_rules.judge(
            draft,
            inventory=known,
            complete=seen is not None,
            policy=policy,
            found=found,
            is_device=context.is_device,
        )
    if draft.mgpu and features.mgpu and (ours or (not draft.prefix and draft.spec.get("nodeName"))):
        mgpu_rules.judge(draft, settings.mgpu, found)
    gated = features.gates and ours and asks_ours(draft, context)
    if gated and draft.spec.get("affinity"):
        found.violations += limits.expressions(draft.spec, draft.prefix)
    if features.cross_quota and names.CROSSQUOTA_STRATEGY_ANNOTATION in draft.annotations:
        found.hints += crossquota.pod_hints(draft)
    if queues is None or names.MIRROR_POD_ANNOTATION in draft.annotations:
        return None
    destination = destination_of(draft, context)
    if gated and destination is not None and not found.violations:
        # Only those hear it who wait at the gate.
        outlook.judge_pod(draft, served, destination, queues.get(destination.queue), context, found)
    return destination
