"""Queue status: our keys are put back when another writer drops them.

The Volcano scheduler replaces the whole of `status.allocated` with a map of its own about once a second. What the
old map had and the new one lacks is put back, unless managedFields of the old object say that another manager than
ours owns it: that manager may drop what is its own. After a put-back nobody owns the key, because ownership is
computed before webhooks run; what is ownerless is ours therefore.
"""

from core import names
from core.admission.request import ALLOWED, UPDATE, Add, AdmissionRequest, Decision
from core.admission.view import Context
from core.objects import raw as read
from core.objects.queue import foreign_keys

_ALLOCATED = ("status", "allocated")


def mutate(request: AdmissionRequest, _context: Context) -> Decision:
    """The keys to put back into the new status; none into a write of our own, which removes keys on purpose."""
    if request.operation != UPDATE or request.field_manager == names.FIELD_MANAGER:
        return ALLOWED
    foreign = foreign_keys(read.mapping(request.old_object, "metadata"))
    have = read.mapping(request.object, *_ALLOCATED)
    missing = {
        key: value
        for key, value in read.mapping(request.old_object, *_ALLOCATED).items()
        if key not in have and key not in foreign
    }
    status = request.object.get("status")
    allocated = read.mapping(status).get("allocated")
    wrong = not isinstance(status, dict | None) or not isinstance(allocated, dict | None)
    if not missing or wrong:  # a status of the wrong type is the schema's business
        return ALLOWED
    if status is None:
        return Decision((Add(("status",), {"allocated": missing}),))
    if allocated is None:
        return Decision((Add(_ALLOCATED, missing),))
    return Decision(tuple(Add((*_ALLOCATED, key), value) for key, value in missing.items()))
