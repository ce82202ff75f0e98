"""Gangs without PodGroup: what the annotations that name one must look like, and where nobody reads them."""

from collections.abc import Callable, Mapping
from typing import Final

from core import names, reasons
from core.admission.asks import asks_ours
from core.admission.view import Context
from core.objects.draft import Draft
from core.objects.gang import name_problem, size_problem
from core.violations import Findings, Hint, Violation

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
