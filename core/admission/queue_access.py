"""Who may use a queue: what a queue says about it, and pods that name one which is closed to their namespace.

Early feedback only, and only where queue and namespace are both in view: the gate decides in the end, whatever way sends a
pod to a queue.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.admission.asks import asks_ours
from core.admission.destination import Destination, home_of, is_certain
from core.admission.request import UPDATE, Context
from core.objects import raw as read
from core.objects.draft import Draft
from core.queues.access import may_use, problem_of
from core.violations import Findings, Hint, Violation, child

_ANNOTATIONS: Final = (names.NAMESPACES_ANNOTATION, names.NAMESPACE_SELECTOR_ANNOTATION)
_WAY_OUT: Final = (
    f"name another queue, or have {names.NAMESPACES_ANNOTATION} or {names.NAMESPACE_SELECTOR_ANNOTATION} of the "
    "queue admit the namespace"
)


def queue_violations(operation: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Violation]:
    """What is wrong with the annotations of a new queue, and with those of a stored one that change."""
    now, was = read.texts(new, "metadata", "annotations"), read.texts(old, "metadata", "annotations")
    for key in _ANNOTATIONS:
        text = now.get(key)
        if text is None or (operation == UPDATE and text == was.get(key)):
            continue
        problem = problem_of(key, text)
        if problem:
            path = child("metadata.annotations", key)
            yield Violation(reasons.QUEUE_ACCESS_MALFORMED, path, problem, value=text)


def judge_pod(draft: Draft, destination: Destination, context: Context, found: Findings) -> None:
    """Whether the queue of a pod of ours, or of the pods made from a template, is open to their namespace.

    One that they name themselves is refused. To one that their namespace names, or that is the default, they are sent
    without a word of theirs: they wait, and are warned.
    """
    queue, home = (context.view.queues or {}).get(destination.queue), home_of(draft.namespace, context)
    if queue is None or home is None or may_use(queue, home.name, home.labels, context.settings.queue.access):
        return
    if not asks_ours(draft, context):
        return
    said = f"queue {queue.name} is not open to namespace {home.name}"
    code, path = reasons.QUEUE_NOT_ALLOWED, destination.path
    if is_certain(draft, destination):
        found.violations.append(Violation(code, path, f"{said}; {_WAY_OUT}", "Forbidden", queue.name))
    else:
        found.hints.append(Hint(code, path, f"{said}; what is sent to it waits until it is"))
