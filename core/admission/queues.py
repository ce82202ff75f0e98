"""Queues: a card quota that cannot be read is refused where it is written.

A bad value that is stored all the same counts as no cards at all, so a queue with one brings a whole team to a
halt; but it must not keep anybody from editing, closing or finalising that queue.
"""

from typing import Final

from core import names
from core.admission import shapes
from core.admission.request import UPDATE, AdmissionRequest
from core.admission.view import Context
from core.cards.quota import quota_findings
from core.objects import raw as read
from core.violations import Findings, child

_PATH: Final = child("metadata.annotations", names.CARD_QUOTA_ANNOTATION)


def judge(request: AdmissionRequest, context: Context) -> Findings:
    """The grammar of the card quota of a new queue, and of a stored one whose quota changes."""
    malformed = shapes.annotated(request.object)
    if malformed:
        return Findings(malformed)
    now = read.texts(request.object, "metadata", "annotations").get(names.CARD_QUOTA_ANNOTATION)
    was = read.texts(request.old_object, "metadata", "annotations").get(names.CARD_QUOTA_ANNOTATION)
    if not context.settings.features.cards or now is None or (request.operation == UPDATE and now == was):
        return Findings()
    return quota_findings(now, _PATH)
