"""The queue that something will charge, as far as the object itself and what is in view can tell."""

from dataclasses import dataclass
from typing import Final

from core import names
from core.admission.view import Context
from core.objects import Namespace
from core.objects.draft import Draft
from core.queues.attribution import attribute, owned_by_job

_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Destination:
    """The queue that something will charge, whether anything names it, and the field that does or could.

    `certain` is whether the object under review names it itself, and nothing that is not in view comes before that.
    """

    queue: str
    named: bool
    path: str
    certain: bool


def destination_of(draft: Draft, context: Context) -> Destination | None:
    """Where a pod will go by what it says itself; None when only an object that is not in view can tell."""
    job = draft.job
    # The PodGroup that a pod names comes before its namespace, and is not in view.
    grouped = names.GROUP_NAME_ANNOTATION in draft.texts
    home = None if grouped else home_of(draft.namespace, context)
    found = attribute(draft, None, job, home, context.settings.queue.default)
    if not found.named and (grouped or context.view.namespaces is None):
        return None
    in_job = job is not None and bool(job.queue)
    own = found.queue == draft.texts.get(names.QUEUE_NAME_ANNOTATION)
    # Volcano gives the pods of a job a PodGroup of the job's queue, and a job without one is sent to a queue of its choice.
    certain = in_job or (own and not grouped and job is None and not owned_by_job(draft))
    path = "spec.queue" if in_job else draft.path_of(names.QUEUE_NAME_ANNOTATION)
    return Destination(found.queue, found.named, path, certain)


def home_of(namespace: str, context: Context) -> Namespace | None:
    """The namespace of an object, '' for the default one; None where it is not in view."""
    known = context.view.namespaces
    return None if known is None else known.get(namespace or _DEFAULT_NAMESPACE)
