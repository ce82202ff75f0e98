"""Queues: what cannot be read is refused where it is written, and what other writers would take away is put back.

A bad card quota that is stored all the same counts as no cards at all, and a bad device quota closes what it is about, so a
queue with one brings a whole team to a halt, as does one that nobody is admitted to by mistake; but it must not keep anybody from editing, closing or finalising that queue.
"""

from collections.abc import Iterator
from typing import Final

from core import names, quantity, reasons
from core.admission import card_quota, levels, limits, queue_access, shapes
from core.admission.request import ALLOWED, DELETE, UPDATE, Add, AdmissionRequest, Context, Decision
from core.display.twofold import contradiction
from core.dra import rules as dra_rules
from core.dra.schema import SPEC_DRA, missing
from core.objects import Queue, queue
from core.objects import raw as read
from core.objects.queue import foreign_keys
from core.queues.narrowed import narrowed
from core.violations import Findings, Hint, child, show

_PATH: Final = "status.allocated"
_OF_EVERY_POD: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""The scheduler's own keys: they say nothing about cards."""
_TOLD: Final = 4
_ALLOCATED = ("status", "allocated")


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The quotas of a new queue and who may use it, what of that changes on a stored one, and what a deleted one is used for."""
    if request.operation == DELETE:
        _judge_deletion(request, found)
        return
    new, old, settings, view = request.object, request.old_object, context.settings, context.view
    malformed = shapes.annotated(new) or tuple(limits.device_quota(new, old))
    if malformed:
        found.violations += malformed
        return
    levels.judge(request, context, found)
    card_quota.judge(request, context, found)
    found.hints += _capability_hints(request, context)
    if settings.features.dra:
        hierarchy = settings.dra.hierarchy
        found += dra_rules.judge(
            new, old, queues=view.queues, device_classes=view.device_classes, hierarchy=hierarchy
        )
    found.violations += queue_access.queue_violations(request.operation, new, old)


def _capability_hints(request: AdmissionRequest, context: Context) -> Iterator[Hint]:
    """Where `spec.capability` contradicts the card quota of a new queue, and of a stored one of which either changes."""
    now, was = queue.project(request.object), queue.project(request.old_object)
    same = (now.card_quota, now.capability) == (was.card_quota, was.capability)
    if same or not context.settings.features.cards:
        return
    for found in narrowed(now, context.inventory.resources_of):
        path = child("spec.capability", found.resource)
        yield Hint(reasons.CAPABILITY_BELOW_QUOTA, path, contradiction(found))


def _judge_deletion(request: AdmissionRequest, found: Findings) -> None:
    """A warning with what is in use of a queue that is deleted; never a refusal: nobody has to wait for pods before a queue may go."""
    deleted = queue.project(request.old_object)
    used = list(_in_use(deleted))
    if not used:
        return
    more = f" and {len(used) - _TOLD} more" if len(used) > _TOLD else ""
    detail = (
        f"{', '.join(used[:_TOLD])}{more} in use; what runs goes on, and what is created for this queue from now on waits "
        "until there is a queue of this name again"
    )
    found.hints.append(Hint(reasons.QUEUE_IN_USE, _PATH, detail))


def _in_use(deleted: Queue) -> Iterator[str]:
    for key, text in sorted(deleted.allocated.items()):
        if key in _OF_EVERY_POD:
            continue
        try:
            amount = quantity.milli(text)
        except quantity.QuantityError:
            continue
        if amount > 0:
            yield f"{quantity.render_milli(amount)} {show(key)}"


def mutate_status(request: AdmissionRequest, _context: Context) -> Decision:
    """The keys of ours to put back into the new status; none into a write of our own, which removes keys on purpose.

    The Volcano scheduler replaces the whole of `status.allocated` with a map of its own about once a second. What the
    old map had and the new one lacks is put back, unless managedFields of the old object say that another manager than
    ours owns it: that manager may drop what is its own. After a put-back nobody owns the key, because ownership is
    computed before webhooks run; what is ownerless is ours therefore.
    """
    if request.operation != UPDATE or request.field_manager == names.FIELD_MANAGER:
        return ALLOWED
    foreign = foreign_keys(read.mapping(request.old_object, "metadata"))
    have = read.mapping(request.object, *_ALLOCATED)
    dropped = {
        key: value
        for key, value in read.mapping(request.old_object, *_ALLOCATED).items()
        if key not in have and key not in foreign
    }
    status = request.object.get("status")
    allocated = read.mapping(status).get("allocated")
    wrong = not isinstance(status, dict | None) or not isinstance(allocated, dict | None)
    if not dropped or wrong:  # a status of the wrong type is the schema's business
        return ALLOWED
    if status is None:
        return Decision((Add(("status",), {"allocated": dropped}),))
    if allocated is None:
        return Decision((Add(_ALLOCATED, dropped),))
    return Decision(tuple(Add((*_ALLOCATED, key), value) for key, value in dropped.items()))


def mutate_definition(request: AdmissionRequest, context: Context) -> Decision:
    """The schema of `spec.dra` for the definition of Queue; nothing where that is to be left as it is.

    An installation or upgrade of Volcano must not lose the field: the stock definition does not have it, and under that the
    first write to a queue deletes what the queue has there. So it is added, for each version that lacks it, in the very write
    that would take it away.
    """
    settings = context.settings
    if not settings.features.dra or settings.dra.queue_crd != "extend":
        return ALLOWED
    return Decision(tuple(Add(path, SPEC_DRA) for path in missing(request.object)))
