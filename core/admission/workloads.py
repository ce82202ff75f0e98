"""Workloads: the rules of the pods that they will make, said when the workload is written.

A pod that is refused shows up in an event of a ReplicaSet; the same words at `kubectl apply` reach the person who
wrote the template. Only what a write changes is judged, so that an object stored before a rule existed can still
be scaled, labelled and cleaned up.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.admission import card_request, limits, shapes, templates
from core.admission.asks import asks_ours
from core.admission.request import CREATE, UPDATE, AdmissionRequest
from core.admission.shapes import Violations
from core.admission.templates import Subject, namespace_of
from core.admission.view import Context
from core.objects import Job, job
from core.objects import raw as read
from core.violations import Findings, Hint, child, show

Judge = Callable[[AdmissionRequest, Context], Findings]

_JOB_SCHEDULER: Final = "volcano"
_FOUND_MOST: Final = 100
"""More than anybody is shown of one object; the tasks after that are judged when these are mended."""


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
        subject = Subject.of(template, prefix, namespace=namespace_of(request))
        return templates.judge(subject, context)

    return judge


def judge_volcano_job(request: AdmissionRequest, context: Context) -> Findings:
    """The rules for a Volcano Job: its card request, and the template of each task that is new or changed."""
    malformed = shapes.volcano_job(request.object)
    if malformed:
        return Findings(malformed)
    findings = card_request.judge(request, context)
    if request.operation == CREATE or _declared(request.object) != _declared(request.old_object):
        findings += Findings(hints=tuple(card_request.tasks_hints(request.object, context)))
    changed = list(_changed_templates(request))
    beyond = tuple(limits.templates(len(changed), "spec.tasks"))
    if beyond:
        return findings + Findings(beyond)
    view = job.project(request.object)
    for index, template in changed:
        findings += _judge_task(request, view, template, f"spec.tasks[{index}].template.", context)
        if len(findings.violations) + len(findings.hints) > _FOUND_MOST:
            break
    return findings


def judge_podgroup(request: AdmissionRequest, context: Context) -> Findings:
    """The rules for a PodGroup: its card request."""
    malformed = shapes.pod_group(request.object)
    return Findings(malformed) if malformed else card_request.judge(request, context)


def _tasks(job: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (read.mapping(task) for task in read.sequence(job, "spec", "tasks"))


def _changed_templates(request: AdmissionRequest) -> Iterator[tuple[int, object]]:
    """The templates that are new or not as they are stored, with the place of their task."""
    stored = {read.text(task, "name"): task.get("template") for task in _tasks(request.old_object)}
    for index, task in enumerate(_tasks(request.object)):
        template, name = task.get("template"), read.text(task, "name")
        if request.operation == CREATE or name not in stored or stored[name] != template:
            yield index, template


def _judge_task(
    request: AdmissionRequest, view: Job, template: object, prefix: str, context: Context
) -> Findings:
    # The job controller hands the job's scheduler to pods that name none.
    scheduler = read.text(read.mapping(request.object, "spec"), "schedulerName") or _JOB_SCHEDULER
    subject = Subject.of(template, prefix, namespace=namespace_of(request), scheduler=scheduler, job=view)
    unread = Findings(hints=tuple(_unread_queue_names(subject, view.queue, context)))
    return templates.judge(subject, context) + unread


def _unread_queue_names(subject: Subject, queue: str, context: Context) -> Iterator[Hint]:
    """The queue of the job decides; a template may repeat it, but not name another."""
    if not queue or not asks_ours(subject.metadata, subject.spec, context):
        return
    annotations = read.texts(subject.metadata, "annotations")
    for key in (names.QUEUE_NAME_ANNOTATION, names.JOB_QUEUE_ANNOTATION):
        named = annotations.get(key)
        if named and named != queue:
            path = child(f"{subject.prefix}metadata.annotations", key)
            detail = f"{show(named)} is not read: the queue of a Volcano Job is its spec.queue, {show(queue)}"
            yield Hint(reasons.QUEUE_NAME_UNREAD, path, detail)


def _declared(raw: Mapping[str, Any]) -> tuple[object, ...]:
    """What the card request of a job is compared with, and the request itself."""
    annotations = read.mapping(raw, "metadata", "annotations")
    tasks = [(task.get("replicas"), task.get("template")) for task in _tasks(raw)]
    return annotations.get(names.CARD_REQUEST_ANNOTATION), tasks
