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
    """A hint for pods that name Kubernetes' own PodGroup and nothing else: they are let in one by one, and it starts them together."""
    elsewhere = names.GROUP_NAME_ANNOTATION in draft.texts or draft.job is not None
    if elsewhere or all(key in draft.texts for key in names.GANG_KEYS):
        return
    held = context.settings.features.gates and draft.scheduler in context.settings.scheduler_names
    if held and asks_ours(draft, context):
        text = (
            "is not read: quota is given to these pods one by one, so some may hold it while others wait; give their template "
            f"{' and '.join(names.GANG_KEYS)} as well, with the minCount of the PodGroup"
        )
        found.hints.append(Hint(reasons.GANG_UNREAD, f"{draft.prefix}spec.schedulingGroup", text))


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
