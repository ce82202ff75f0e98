"""Workloads: the rules of the pods that they will make, said when the workload is written.

A pod that is refused shows up in an event of a ReplicaSet; the same words at `kubectl apply` reach the person who
wrote the template. Only what a write changes is judged, so that an object stored before a rule existed can still
be scaled, labelled and cleaned up.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.admission import shapes, templates
from core.admission.request import CREATE, UPDATE, AdmissionRequest
from core.admission.shapes import Violations
from core.admission.templates import Subject
from core.admission.view import Context
from core.cards.expression import split
from core.cards.quota import CardJsonError, parse_quota, parse_request, request_findings
from core.objects import raw as read
from core.violations import Findings, Hint, child, show

Judge = Callable[[AdmissionRequest, Context], Findings]

_JOB_SCHEDULER: Final = "volcano"
_REQUEST_PATH: Final = child("metadata.annotations", names.CARD_REQUEST_ANNOTATION)


def with_template(*path: str, shape: Callable[[Mapping[str, Any]], Violations]) -> Judge:
    """The rules for a kind with one pod template, at `path`."""
    prefix = ".".join(path) + "."

    def judge(request: AdmissionRequest, context: Context) -> Findings:
        malformed = shape(request.object)
        if malformed:
            return Findings(malformed)
        template = read.mapping(request.object, *path)
        if request.operation == UPDATE and template == read.mapping(request.old_object, *path):
            return Findings()
        return templates.judge(Subject.of(template, prefix), context)

    return judge


def judge_volcano_job(request: AdmissionRequest, context: Context) -> Findings:
    """The rules for a Volcano Job: its card request, and the template of each task that is new or changed."""
    malformed = shapes.volcano_job(request.object)
    if malformed:
        return Findings(malformed)
    findings = _card_request(request, context)
    # The job controller hands the job's scheduler to pods that name none.
    scheduler = read.text(read.mapping(request.object, "spec"), "schedulerName") or _JOB_SCHEDULER
    stored = {read.text(task, "name"): task.get("template") for task in _tasks(request.old_object)}
    for index, task in enumerate(_tasks(request.object)):
        template, name = task.get("template"), read.text(task, "name")
        if request.operation == CREATE or name not in stored or stored[name] != template:
            subject = Subject.of(template, f"spec.tasks[{index}].template.", scheduler)
            findings += templates.judge(subject, context)
    return findings


def judge_podgroup(request: AdmissionRequest, context: Context) -> Findings:
    """The rules for a PodGroup: its card request."""
    malformed = shapes.annotated(request.object)
    return Findings(malformed) if malformed else _card_request(request, context)


def _tasks(job: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (read.mapping(task) for task in read.sequence(job, "spec", "tasks"))


def _card_request(request: AdmissionRequest, context: Context) -> Findings:
    now = read.texts(request.object, "metadata", "annotations").get(names.CARD_REQUEST_ANNOTATION)
    was = read.texts(request.old_object, "metadata", "annotations").get(names.CARD_REQUEST_ANNOTATION)
    if not context.settings.features.cards or now is None or (request.operation == UPDATE and now == was):
        return Findings()
    findings = request_findings(now, _REQUEST_PATH)
    if findings.violations:
        return findings
    queue = read.text(read.mapping(request.object, "spec"), "queue") or context.settings.queue.default
    return findings + Findings(hints=tuple(_beyond_quota(parse_request(now), queue, context)))


def _beyond_quota(requested: Mapping[str, int], name: str, context: Context) -> Iterator[Hint]:
    """What the queue could not serve even when it is empty; its quota may grow, so the object is admitted."""
    queue = (context.view.queues or {}).get(name)
    if queue is None:
        return
    try:
        quota = parse_quota(queue.card_quota)
    except CardJsonError:
        quota = {}
    for cards, count in requested.items():
        limit = sum(quota.get(card, 0) for card in split(cards))
        if count > limit:
            detail = f"{show(cards)}: {count} are more than the whole quota of queue {name} ({limit}); the group will wait"
            yield Hint(reasons.INSUFFICIENT_SCALAR_QUOTA, _REQUEST_PATH, detail)
