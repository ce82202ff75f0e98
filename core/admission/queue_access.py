"""Who may use a queue: what a queue says about it, and pods that name one which is closed to their namespace.

Early feedback only, and only where queue and namespace are both in view: the gate decides in the end, whatever way sends a
pod to a queue.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.admission.asks import asks_ours
from core.admission.destination import destination_of, home_of
from core.admission.request import UPDATE
from core.admission.view import Context
from core.objects import Job
from core.objects import raw as read
from core.queues.access import may_use, problem_of
from core.violations import Findings, Hint, Violation, child

_ANNOTATIONS: Final = (names.NAMESPACES_ANNOTATION, names.NAMESPACE_SELECTOR_ANNOTATION)
_WAY_OUT: Final = (
    f"name another queue, or have {names.NAMESPACES_ANNOTATION} or {names.NAMESPACE_SELECTOR_ANNOTATION} of the "
    "queue admit the namespace"
)


def queue_findings(operation: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> Findings:
    """The annotations of a new queue, and those of a stored one that change."""
    return Findings(tuple(_unreadable(operation, new, old)))


def _unreadable(operation: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Violation]:
    now, was = read.texts(new, "metadata", "annotations"), read.texts(old, "metadata", "annotations")
    for key in _ANNOTATIONS:
        text = now.get(key)
        if text is None or (operation == UPDATE and text == was.get(key)):
            continue
        problem = problem_of(key, text)
        if problem:
            path = child("metadata.annotations", key)
            yield Violation(reasons.QUEUE_ACCESS_MALFORMED, path, problem, value=text)


def pod_findings(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    *,
    prefix: str,
    namespace: str,
    job: Job | None,
    context: Context,
) -> Findings:
    """Whether the queue of a pod, or of the pods made from a template, is open to their namespace.

    One that they name themselves is refused. To one that their namespace names, or that is the default, they are sent
    without a word of theirs: they wait, and are warned.
    """
    queues, home = context.view.queues, home_of(namespace, context)
    if queues is None or home is None or names.MIRROR_POD_ANNOTATION in read.mapping(metadata, "annotations"):
        return Findings()
    destination = destination_of(metadata, prefix, namespace, job, context)
    queue = None if destination is None else queues.get(destination.queue)
    if destination is None or queue is None:
        return Findings()
    if may_use(queue, home.name, home.labels, context.settings.queue.access):
        return Findings()
    if not asks_ours(metadata, spec, context):
        return Findings()
    said = f"queue {queue.name} is not open to namespace {home.name}"
    if destination.certain:
        violation = Violation(
            reasons.QUEUE_NOT_ALLOWED, destination.path, f"{said}; {_WAY_OUT}", "Forbidden", queue.name
        )
        return Findings((violation,))
    hint = Hint(reasons.QUEUE_NOT_ALLOWED, destination.path, f"{said}; what is sent to it waits until it is")
    return Findings(hints=(hint,))
