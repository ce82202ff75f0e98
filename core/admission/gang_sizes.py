"""Gangs that can never be complete: more of their members have to start together than the workload that makes them makes."""

from collections.abc import Iterator, Mapping
from typing import Any

from core import names, reasons
from core.admission.request import UPDATE, AdmissionRequest
from core.admission.view import Context
from core.objects import raw as read
from core.objects.draft import Draft
from core.objects.gang import name_problem, size_problem
from core.objects.owner import controlling_owner
from core.pod_sets import PodSet
from core.violations import Findings, Hint
from core.workloads import Workload, kinds_with


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
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
            path = Draft.of(made.template, f"{made.path}.").path_of(names.GANG_SIZE_ANNOTATION)
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
