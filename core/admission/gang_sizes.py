"""Gangs without PodGroup that can never be complete: their size is more than the workload that names them makes pods."""

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
    """A hint for each gang that a workload names, and of which it makes too few members; what was so before is not told again.

    What another object makes is its owner's business.
    """
    row = kinds_with(context.settings.workloads).get((request.group, request.kind))
    if row is None or row.gang or controlling_owner(read.mapping(request.object, "metadata")) is not None:
        return
    before = set(_hints(row, request.old_object)) if request.operation == UPDATE else set()
    found.hints += [hint for hint in _hints(row, request.object) if hint not in before]


def _hints(row: Workload, raw: Mapping[str, Any]) -> Iterator[Hint]:
    gangs: dict[tuple[str, str], tuple[int, PodSet]] = {}
    """By name, and by whose replicas are gangs of their own: how many pods one of them has, and the template with the largest size."""
    for made in row.makes(raw, 0):
        name, size = _named(made)
        if size:
            called, replicas = made.replicas or ("", 1)
            pods, largest = gangs.get((called, name), (0, made))
            largest = made if size > _named(largest)[1] else largest
            gangs[called, name] = pods + made.count // max(1, replicas), largest
    for (_, name), (pods, made) in gangs.items():
        size = _named(made)[1]
        # Of what makes none now nobody knows how many it will.
        if 0 < pods < size:
            path = Draft.of(made.template, f"{made.path}.").path_of(names.GANG_SIZE_ANNOTATION)
            text = f"{size} members of gang {name} have to start together, and this makes {pods}: none of them starts"
            yield Hint(reasons.GANG_NEVER_COMPLETE, made.place(path), text)


def _named(made: PodSet) -> tuple[str, int]:
    """The gang that a template names, and its size; 0 where it names none, and where what it says is refused anyway."""
    annotations = read.mapping(made.template, "metadata", "annotations")
    name, size = (
        read.text(annotations, names.GANG_NAME_ANNOTATION),
        read.text(annotations, names.GANG_SIZE_ANNOTATION),
    )
    good = name and size and not (name_problem(name) or size_problem(size))
    return (name, int(size)) if good else ("", 0)
