"""`spec.capability` of a queue beside its card quota: hinted at where the two contradict each other."""

from collections.abc import Iterator

from core import reasons
from core.admission.request import AdmissionRequest
from core.admission.view import Context
from core.display.twofold import contradiction
from core.objects import queue
from core.queues.narrowed import narrowed
from core.violations import Hint, child


def hints(request: AdmissionRequest, context: Context) -> Iterator[Hint]:
    """The contradictions of a new queue, and of a stored one whose quota or capability changes."""
    now, was = queue.project(request.object), queue.project(request.old_object)
    same = (now.card_quota, now.capability) == (was.card_quota, was.capability)
    if same or not context.settings.features.cards:
        return
    for found in narrowed(now, context.inventory.resources_of):
        path = child("spec.capability", found.resource)
        yield Hint(reasons.CAPABILITY_BELOW_QUOTA, path, contradiction(found))
