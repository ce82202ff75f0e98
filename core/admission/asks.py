"""Whether a pod, or the template of one, asks for anything of ours; judged on raw JSON.

The API server decides with a CEL expression which pods it sends here at all. That expression is a little wider
(it also lets through an empty card name, a list of card counts without an mGPU resource); what counts in the end
is the meaning below, which is that of `core.objects.Pod`: whatever is gated here must be lifted by the controller.
"""

from core.admission.request import Context
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
    inferred = features.cards and context.settings.cards.pods_without_card_name == "infer"
    classes, inventory = context.view.serving, context.view.inventory
    served = features.dra and (classes is None or bool(classes))
    if not inferred and not served:
        return False
    for resource in extended(draft.requests):
        # While no node was seen, any of them may be a card.
        if inferred and (inventory is None or stands_for_share(resource) or inventory.cards_of(resource)):
            return True
        if served and (classes is None or classes.serving(resource)):
            return True
    return False
