"""The queue that something will charge, as far as the object itself and what is in view can tell."""

from dataclasses import dataclass
from typing import Final

from core import names
from core.admission.request import Context
from core.objects import Namespace
from core.objects.draft import Draft
from core.queues.attribution import attribute, owned_by_job

_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Destination:
    """The queue that something will charge, whether anything names it, and the field that does or could."""

    queue: str
    named: bool
    path: str


def destination_of(draft: Draft, context: Context) -> Destination | None:
    """Where a pod will go by what it says itself; None when only an object that is not in view can tell."""
    job = draft.job
    # The PodGroup that a pod names comes before its namespace, and is not in view.
    grouped = names.GROUP_NAME_ANNOTATION in draft.texts
    home = None if grouped else home_of(draft.namespace, context)
    found = attribute(draft, None, job, home, context.settings.queue.default)
    if not found.named and (grouped or context.view.namespaces is None):
        return None
    path = f"{draft.prefix}metadata.annotations[{names.QUEUE_NAME_ANNOTATION}]"
    return Destination(found.queue, found.named, "spec.queue" if job is not None and job.queue else path)


def is_certain(draft: Draft, destination: Destination) -> bool:
    """Whether the object under review names the queue itself, and nothing that is not in view comes before that."""
    if draft.job is not None:
        # Volcano gives the pods of a job a PodGroup of the job's queue, and a job without one is sent to a queue of its choice.
        return bool(draft.job.queue)
    own = destination.queue == draft.texts.get(names.QUEUE_NAME_ANNOTATION)
    return own and names.GROUP_NAME_ANNOTATION not in draft.texts and not owned_by_job(draft)


def home_of(namespace: str, context: Context) -> Namespace | None:
    """The namespace of an object, '' for the default one; None where it is not in view."""
    known = context.view.namespaces
    return None if known is None else known.get(namespace or _DEFAULT_NAMESPACE)
