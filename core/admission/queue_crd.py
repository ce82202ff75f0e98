"""The definition of Queue: an installation or upgrade of Volcano must not lose `spec.dra`.

The stock definition does not have the field, and under it the first write to a queue deletes what the queue has there. So
the field is added in the very write that would take it away.
"""

from core.admission.request import ALLOWED, Add, AdmissionRequest, Decision
from core.admission.view import Context
from core.dra.schema import SPEC_DRA, missing


def mutate(request: AdmissionRequest, context: Context) -> Decision:
    """The schema of `spec.dra`, for each version that lacks it; nothing where the definition is to be left as it is."""
    settings = context.settings
    if not settings.features.dra or settings.dra.queue_crd != "extend":
        return ALLOWED
    return Decision(tuple(Add(path, SPEC_DRA) for path in missing(request.object)))
