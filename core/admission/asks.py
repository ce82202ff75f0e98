"""Whether a pod, or the template of one, asks for anything of ours; judged on raw JSON.

The API server decides with a CEL expression which pods it sends here at all. That expression is a little wider
(it also lets through an empty card name, a list of card counts without an mGPU resource); what counts in the end
is the meaning below, which is that of `core.objects.Pod`: whatever is gated here must be lifted by the controller.
"""

from core.admission.view import Context
from core.cards.expression import stands_for_share
from core.objects.draft import Draft
from core.objects.pod_resources import extended


def asks_ours(draft: Draft, context: Context) -> bool:
    """Whether a pod asks for something of ours whose feature is on; an empty card name asks for nothing.

    Among that are extended resources which a DeviceClass serves, or which stand for a card that nobody named and that is to
    be inferred. Where the DeviceClasses are not known yet, any may be one: the controller lets a pod go that waits for nothing.
    """
    features = context.settings.features
    if (features.cards and draft.cards) or (features.mgpu and draft.mgpu) or (features.dra and draft.claims):
        return True
    if _asks_unnamed_card(draft, context):
        return True
    classes = context.view.serving
    if not features.dra or (classes is not None and not classes):
        return False
    resources = extended(draft.requests)
    return any(classes is None or classes.serving(resource) for resource in resources)


def _asks_unnamed_card(draft: Draft, context: Context) -> bool:
    """Whether a pod that names no card asks for one, where that is gated; any extended resource while no node was seen."""
    settings, inventory = context.settings, context.view.inventory
    if settings.cards.pods_without_card_name != "infer" or not settings.features.cards:
        return False
    resources = extended(draft.requests)
    if inventory is None:
        return bool(resources)
    return any(stands_for_share(resource) or inventory.cards_of(resource) for resource in resources)
