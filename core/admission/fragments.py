"""Templates that are a part of their pods: what is wrong with one whatever else goes into the pod.

A ServingRuntime, a TrainJob, a parameter or a patch adds the rest later, and nobody sees it where the template is written. So what
the template lacks is no fault of it, and a text with `{{` in it is not the one that the pods will have.
"""

from collections.abc import Container
from typing import Final

from core import reasons
from core.mgpu.ask import CardCountsError, parse_counts
from core.objects.draft import Draft
from core.violations import Findings, Hint, Violation

_PLACEHOLDER: Final = "{{"


def certain(found: Findings, draft: Draft) -> Findings:
    """What holds of the pods as well, of all that was found in their template."""
    unwritten = {draft.path_of(key) for key, text in draft.texts.items() if _PLACEHOLDER in text}
    kept = Findings(hints=[hint for hint in found.hints if _holds(hint, unwritten)])
    for violation in found.violations:
        if violation.code == reasons.CARD_NAME_MISSING and not draft.cards:
            text = f"{violation.detail}; pods are refused where nothing else names their card"
            kept.hints.append(Hint(violation.code, violation.path, text))
        elif _stays(violation):
            kept.violations.append(violation)
    return kept


def _stays(violation: Violation) -> bool:
    """Whether nothing that is added mends it. A record stays forbidden whatever its text will be."""
    if violation.kind == "Required value":
        # A card beside the named one is there already: what is added takes nothing away.
        return violation.code == reasons.CARD_NAME_MISSING
    if violation.kind != "Invalid value" or not isinstance(violation.value, str):
        return True
    return _PLACEHOLDER not in violation.value and not _counts_containers(violation)


def _counts_containers(violation: Violation) -> bool:
    """Whether good card counts do not go with the containers: more of those may be added."""
    if violation.code != reasons.MGPU_CARD_COUNTS or not isinstance(violation.value, str):
        return False
    try:
        parse_counts(violation.value)
    except CardCountsError:
        return False
    return True


def _holds(hint: Hint, unwritten: Container[str]) -> bool:
    """Whether a hint is about what is there. Why nobody reads a gang follows from what is not, such as its size or a card."""
    return hint.path not in unwritten and _PLACEHOLDER not in hint.detail and hint.code != reasons.GANG_UNREAD
