"""Gangs without PodGroup: what the annotations that name one must look like, and where nobody reads them.

And gangs that can never be complete: more of their members have to start together than the workload that makes them makes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.admission.asks import asks_ours
from core.admission.request import UPDATE, AdmissionRequest, Context
from core.objects import raw as read
from core.objects.draft import Draft
from core.objects.group import name_problem, size_problem
from core.objects.owner import controlling_owner
from core.pod_sets import PodSet
from core.violations import Findings, Hint, Violation, child
from core.workloads import Workload, kinds_with

_PROBLEMS: Final[Mapping[str, Callable[[str], str]]] = {
    names.GANG_NAME_ANNOTATION: name_problem,
    names.GANG_SIZE_ANNOTATION: size_problem,
}
_OTHER: dict[str, str] = dict(zip(names.GANG_KEYS, reversed(names.GANG_KEYS), strict=True))


def judge(draft: Draft, context: Context, found: Findings) -> None:
    """The rules for a new pod, or a template, that carries either of the two annotations."""
    said = {key: draft.texts[key] for key in names.GANG_KEYS if key in draft.texts}
    wrong = {key: problem for key, value in said.items() if (problem := _PROBLEMS[key](value))}
    for key, detail in wrong.items():
        found.violations.append(
            Violation(reasons.GANG_MALFORMED, draft.path_of(key), detail, value=said[key])
        )
    why = "" if wrong else _unread(draft, context, said)
    if why:
        found.hints.append(Hint(reasons.GANG_UNREAD, draft.path_of(next(iter(said))), why))


def judge_scheduling_group(draft: Draft, context: Context, found: Findings) -> None:
    """A hint for pods that name Kubernetes' own PodGroup where it does not say who is let in together: their scheduler goes by it."""
    held = context.settings.features.gates and draft.scheduler in context.settings.scheduler_names
    why = _unread_scheduling_group(draft, context) if held and asks_ours(draft, context) else ""
    if why:
        found.hints.append(Hint(reasons.GANG_UNREAD, f"{draft.prefix}spec.schedulingGroup", why))


def _unread_scheduling_group(draft: Draft, context: Context) -> str:
    group = draft.texts.get(names.GROUP_NAME_ANNOTATION)
    if draft.job is not None:
        return "is not read: the PodGroup of a Volcano Job says who starts together; leave it out"
    if group:
        return f"is not read beside {names.GROUP_NAME_ANNOTATION}: PodGroup {group} says who starts together; leave one of them out"
    if context.view.kubernetes_groups_served is not False or all(
        key in draft.texts for key in names.GANG_KEYS
    ):
        return ""
    return (
        f"is not read, for no version of its PodGroups that is read here is served: so each pod gets its quota by itself; "
        f"give their template {' and '.join(names.GANG_KEYS)} as well, with the minCount of the PodGroup"
    )


def _unread(draft: Draft, context: Context, said: dict[str, str]) -> str:
    """Why nobody reads good annotations; empty where they count."""
    if len(said) == 1:
        other = _OTHER[next(iter(said))]
        return f"is not read without {other}: the pods start one by one; add {other}, or leave this one out"
    if draft.job is not None:
        return (
            "is not read: the PodGroup of a Volcano Job says who starts together, set its spec.minAvailable"
        )
    if draft.texts.get(names.GROUP_NAME_ANNOTATION):
        group = draft.texts[names.GROUP_NAME_ANNOTATION]
        return (
            f"is not read beside {names.GROUP_NAME_ANNOTATION}: PodGroup {group} says who starts together, set its "
            "spec.minMember, or leave that annotation out"
        )
    if not (context.settings.features.gates and draft.scheduler in context.settings.scheduler_names):
        return (
            f"is not read: pods of scheduler {draft.scheduler} are not held, so nobody lets them in together"
        )
    if not asks_ours(draft, context):
        return (
            "is not read: the pod asks for neither cards, shares nor claims, so it is not held, and no member"
        )
    return ""


def judge_sizes(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """A hint for each gang that a workload names, or is, and of which it makes too few members; what was so before is not told again.

    What another object makes is its owner's business.
    """
    row = kinds_with(context.settings.workloads).get((request.group, request.kind))
    if row is None or controlling_owner(read.mapping(request.object, "metadata")) is not None:
        return
    hints = _declared if row.gang else _named_gangs
    before = set(hints(row, request.old_object)) if request.operation == UPDATE else set()
    found.hints += [hint for hint in hints(row, request.object) if hint not in before]


def _declared(row: Workload, raw: Mapping[str, Any]) -> Iterator[Hint]:
    """Of a kind whose objects say themselves how many of their pods start together, and of each of its tasks."""
    pods = sum(made.count for made in row.makes(raw, 0))
    size = row.gang_of(raw, pods)
    if 0 < pods < size:
        yield _never(row.gang, f"{size} of its pods have to start together, and this makes {pods}")
    for index, task in enumerate(read.sequence(raw, "spec", "tasks")):
        each = read.mapping({"": task}, "")
        replicas = read.integer(each, "replicas", 1)
        least = read.integer(each, "minAvailable", replicas)
        if 0 < replicas < least:
            name = read.text(each, "name") or str(index)
            text = f"{least} pods of task {name} have to start together, and it makes {replicas}"
            yield _never(f"spec.tasks[{index}].minAvailable", text)


def _never(path: str, text: str) -> Hint:
    return Hint(reasons.GANG_NEVER_COMPLETE, path, f"{text}: none of them starts")


def _named_gangs(row: Workload, raw: Mapping[str, Any]) -> Iterator[Hint]:
    gangs: dict[tuple[str, str], tuple[int, PodSet]] = {}
    """By name, and by whose replicas are gangs of their own: how many pods one of them has, and the template with the largest size."""
    for made in row.makes(raw, 0):
        name, size = gang_named(made)
        if size:
            called, replicas = made.replicas or ("", 1)
            pods, largest = gangs.get((called, name), (0, made))
            largest = made if size > gang_named(largest)[1] else largest
            gangs[called, name] = pods + made.count // max(1, replicas), largest
    for (_, name), (pods, made) in gangs.items():
        size = gang_named(made)[1]
        # Of what makes none now nobody knows how many it will.
        if 0 < pods < size:
            path = child(f"{made.path}.metadata.annotations", names.GANG_SIZE_ANNOTATION)
            text = f"{size} members of gang {name} have to start together, and this makes {pods}"
            yield _never(made.place(path), text)


def gang_named(made: PodSet) -> tuple[str, int]:
    """The gang that a template names, and its size; 0 where it names none, and where what it says is refused anyway."""
    annotations = read.mapping(made.template, "metadata", "annotations")
    name, size = (
        read.text(annotations, names.GANG_NAME_ANNOTATION),
        read.text(annotations, names.GANG_SIZE_ANNOTATION),
    )
    good = name and size and not (name_problem(name) or size_problem(size))
    return (name, int(size)) if good else ("", 0)
