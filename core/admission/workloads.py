"""Workloads: the rules of the pods that they will make, said when the workload is written.

A pod that is refused shows up in an event of a ReplicaSet; the same words at `kubectl apply` reach the person who
wrote the template. Only what a write changes is judged, so that an object stored before a rule existed can still
be scaled, labelled and cleaned up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from core import names, reasons
from core.admission import card_request, fragments, limits, shapes, templates
from core.admission.asks import asks_ours
from core.admission.request import CREATE, AdmissionRequest, Context
from core.admission.shapes import Violations
from core.admission.templates import namespace_of
from core.objects import job
from core.objects import raw as read
from core.objects.draft import Draft
from core.pod_sets import PodSet, list_of
from core.violations import Findings, Hint, Violation, show
from core.workloads import Workload

_Said = TypeVar("_Said", Violation, Hint)
Judge = Callable[[AdmissionRequest, Context, Findings], None]

_JOB_SCHEDULER: Final = "volcano"
_FOUND_MOST: Final = 100
"""More than anybody is shown of one object; the tasks after that are judged when these are mended."""


def within_limits(row: Workload, judge: Judge) -> Judge:
    """These rules for objects with no more templates than are looked at; with more they are refused, unless they had as many.

    Those can still be labelled, scaled and cleaned up, and nobody looks: their pods are judged one by one.
    """
    at = next(filter(None, map(list_of, row.templates)), "spec")

    def limited(request: AdmissionRequest, context: Context, found: Findings) -> None:
        count, before = row.places(request.object), row.places(request.old_object)
        found.violations += limits.places(count, before, at)
        if max(count, before) <= limits.MAX_PLACES:
            judge(request, context, found)

    return limited


def with_template(*path: str, shape: Callable[[Mapping[str, Any]], Violations]) -> Judge:
    """The rules for a kind with one pod template, at `path`; `shape` explains what has the wrong type in it."""
    prefix, (*parents, last) = ".".join(path) + ".", path

    def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
        template = read.mapping(request.object, *parents).get(last)
        draft = Draft.of(template, prefix, namespace=namespace_of(request))
        typed = draft.typed and shapes.leads(request.object, *parents)
        malformed = () if typed else shapes.wrong(draft, request.object, shape)
        found.violations += malformed
        stored = read.mapping(request.old_object, *path)
        if not malformed and (request.operation == CREATE or (template or {}) != stored):
            templates.judge(draft, context, found)

    return judge


def with_pod_sets(row: Workload) -> Judge:
    """The rules for a kind of the table that others define: each of its templates that is new or changed."""

    def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
        stored = {made.path: made.template for made in row.makes(request.old_object, 0)}
        changed = [made for made in row.makes(request.object, 0) if stored.get(made.path) != made.template]
        beyond = tuple(limits.templates(len(changed), "spec"))
        drafts = [] if beyond else list(_bounded(_made(request, row, changed)))
        beyond = beyond or _too_large_together(drafts, "spec")
        found.violations += beyond
        for made, draft in () if beyond else zip(changed, drafts, strict=True):
            _judge_made(row, made, draft, context, found)
            if len(found.violations) + len(found.hints) > _FOUND_MOST:
                break

    return judge


def _made(request: AdmissionRequest, row: Workload, changed: Iterable[PodSet]) -> Iterator[Draft]:
    """The templates as the pods of the object will have them."""
    spec = read.mapping(request.object, "spec")
    # Where the queue stands in the spec, it is the spec of a Volcano Job, whose controller hands its scheduler on.
    scheduler = read.text(spec, "schedulerName") or _JOB_SCHEDULER if row.queue else names.DEFAULT_SCHEDULER
    # What names the queue of its pods decides as a Volcano Job does.
    queue = row.queue_of(request.object)
    owner = replace(job.project(request.object), queue=queue) if queue else None
    for made in changed:
        yield Draft.of(
            made.template, f"{made.path}.", namespace=namespace_of(request), scheduler=scheduler, job=owner
        )


def _judge_made(row: Workload, made: PodSet, draft: Draft, context: Context, found: Findings) -> None:
    """The rules of one template, told where its parts stand in the object."""
    here = Findings()
    if draft.typed:
        templates.judge(draft, context, here)
        # What it lacks, and what stands for a text, is the business of the pods: they are judged when they are made.
        here = fragments.certain(here, draft) if row.rest else here
    else:
        here.violations += shapes.wrong(draft, made.template, partial(shapes.template, path=made.path))
    found.violations += [replace(each, path=_place(each.path, row, made)) for each in here.violations]
    found.hints += [replace(each, path=_place(each.path, row, made)) for each in here.hints]


def _place(path: str, row: Workload, made: PodSet) -> str:
    """Where in the object stands what was found; the queue of a Volcano Job is where the row says."""
    return row.queue if row.queue and path == "spec.queue" else made.place(path)


def judge_volcano_job(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The rules for a Volcano Job: its card request, and the template of each task that is new or changed."""
    raw = request.object
    tasks, changed = _tasks(raw), _changed(request)
    beyond = tuple(limits.templates(len(changed), "spec.tasks"))
    # The types of stored tasks were checked when they were stored; of a job of moderate size that need not be relied on.
    others = (
        set() if beyond or len(tasks) > limits.MAX_TEMPLATES else {*range(len(tasks))}.difference(changed)
    )
    looked_at = () if beyond else (*changed, *sorted(others))
    drafts = _drafts(request, [(index, tasks[index]) for index in looked_at])
    malformed = _too_large_together((drafts[index] for index in changed if index in drafts), "spec.tasks")
    if not malformed and not (shapes.leads_to_tasks(raw) and all(draft.typed for draft in drafts.values())):
        malformed = next(
            (shapes.too_large(draft) for draft in drafts.values() if shapes.too_large(draft)), ()
        )
        malformed = malformed or shapes.volcano_job(raw)
    if malformed:
        found.violations += malformed
        return
    card_request.judge(request, context, found)
    if len(drafts) == len(tasks) and _declared(raw) != _declared(request.old_object):
        asked = [(read.integer(tasks[index], "replicas"), draft) for index, draft in drafts.items()]
        found.hints += card_request.tasks_hints(raw, asked, context)
    found.violations += beyond
    for index in () if beyond else changed:
        _judge_task(drafts[index], read.text(tasks[index], "name"), context, found)
        if len(found.violations) + len(found.hints) > _FOUND_MOST:
            break


def _tasks(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [task if isinstance(task, dict) else {} for task in read.sequence(raw, "spec", "tasks")]


def _changed(request: AdmissionRequest) -> list[int]:
    """The places of the tasks whose templates are new, or not as they are stored under the name of the task."""
    tasks = _tasks(request.object)
    if request.operation == CREATE:
        return list(range(len(tasks)))
    stored = {read.text(task, "name"): task.get("template") for task in _tasks(request.old_object)}
    named = [(index, read.text(task, "name"), task.get("template")) for index, task in enumerate(tasks)]
    return [index for index, name, template in named if name not in stored or stored[name] != template]


def _drafts(request: AdmissionRequest, tasks: Sequence[tuple[int, Mapping[str, Any]]]) -> dict[int, Draft]:
    """The templates of these tasks, as far as they are not too large together.

    The job controller hands the job's scheduler to pods that name none.
    """
    view, namespace = job.project(request.object), namespace_of(request)
    scheduler = read.text(read.mapping(request.object, "spec"), "schedulerName") or _JOB_SCHEDULER
    drafts = (
        Draft.of(
            task.get("template"),
            f"spec.tasks[{index}].template.",
            namespace=namespace,
            scheduler=scheduler,
            job=view,
        )
        for index, task in tasks
    )
    return {index: draft for (index, _), draft in zip(tasks, _bounded(drafts), strict=False)}


def _bounded(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """These templates, up to the one with which they are too large together: those after it are not taken apart."""
    parts = 0
    for draft in drafts:
        yield draft
        parts += draft.parts
        if parts > limits.MAX_PARTS:
            return


def _too_large_together(drafts: Iterable[Draft], path: str) -> Violations:
    """Of the new or changed templates of one object, that stand somewhere at `path`: that they are too large together."""
    return limits.parts(sum(draft.parts for draft in _bounded(drafts)), limits.MAX_PARTS, path)


def _judge_task(draft: Draft, task: str, context: Context, found: Findings) -> None:
    """The rules of one template. What is wrong in it is told with the name of its task: nobody knows it by its place."""
    here = Findings()
    templates.judge(draft, context, here)
    here.hints += _unread_queue_names(draft, context)
    found.violations += [_of_task(violation, task, draft) for violation in here.violations]
    found.hints += [_of_task(hint, task, draft) for hint in here.hints]


def _of_task(said: _Said, task: str, draft: Draft) -> _Said:
    if not task or not said.path.startswith(draft.prefix):
        return said
    return replace(said, detail=f"task {show(task)}: {said.detail}")


def judge_podgroup(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The rules for a PodGroup: its card request."""
    malformed = shapes.pod_group(request.object)
    found.violations += malformed
    if not malformed:
        card_request.judge(request, context, found)


def _unread_queue_names(draft: Draft, context: Context) -> Iterator[Hint]:
    """The queue of the job decides; a template may repeat it, but not name another."""
    queue = draft.job.queue if draft.job is not None else ""
    if not queue or not asks_ours(draft, context):
        return
    for key in (names.QUEUE_NAME_ANNOTATION, names.JOB_QUEUE_ANNOTATION):
        named = draft.texts.get(key)
        if named and named != queue:
            detail = f"{show(named)} is not read: the queue of a Volcano Job is its spec.queue, {show(queue)}"
            yield Hint(reasons.QUEUE_NAME_UNREAD, draft.path_of(key), detail)


def _declared(raw: Mapping[str, Any]) -> tuple[object, ...]:
    """What the card request of a job is compared with, and the request itself; nothing for a job that is not there yet."""
    if not raw:
        return ()
    annotations = read.mapping(raw, "metadata", "annotations")
    tasks = [(task.get("replicas"), task.get("template")) for task in _tasks(raw)]
    return annotations.get(names.CARD_REQUEST_ANNOTATION), tasks
