"""The gang that a pod says it belongs to by its own annotations, without a PodGroup, and what counts where it names several."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core import names
from core.objects.owner import Owner

MOST_MEMBERS: Final = 100_000
"""No cluster of Kubernetes has as many pods that could start together."""
LONGEST_NAME: Final = 63
"""As of a label value."""
_SCOPED: Final = "|"
NO_SCOPE: Final = _SCOPED
"""How the key of a gang ends whose members have no owner, and no label that says who belongs together."""
_SIZE_DIGITS: Final = len(str(MOST_MEMBERS))
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_BETWEEN: Final = _LETTERS | frozenset("-_.")
_DIGITS: Final = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Gang:
    """What a member says of its gang. With a `problem` it is no gang at all, and the pod waits until somebody mends that."""

    key: str
    """What tells it apart from every other gang and PodGroup: namespace, name, and whose replica it is. A name has neither slash
    nor bar."""
    name: str
    size: int
    """How many members start together; 0 where that cannot be read."""
    owner: Owner | None
    """The controlling owner that all members have; None where a label says which of them belong together, or nothing does."""
    problem: str = ""


def gang_of(
    metadata: Mapping[str, Any],
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    owner: Owner | None,
    *,
    let_in: bool,
) -> Gang | None:
    """The gang of a pod with these annotations; None unless both are there, and where it belongs to a PodGroup that was made for it.

    Pods of one name are one gang only under one controlling owner, or with one group label: replicas of a set do not merge.
    Volcano's controllers make a PodGroup for each owner, or pod, that has none; that one names the queue, and no more.
    A PodGroup of Kubernetes beside the annotations has its pods scheduled together, and no more.
    Of a pod that was `let_in` it is the gang on record and no other, whatever became of its labels, its owners and its PodGroup:
    whoever may change those would take members from a gang or a PodGroup, and an unfinished one comes before others. Of a pod
    that was not, nobody has put anything on record.
    """
    name, size = annotations.get(names.GANG_NAME_ANNOTATION), annotations.get(names.GANG_SIZE_ANNOTATION)
    if name is None or size is None:
        return None
    namespace = metadata.get("namespace")
    whose = f"{namespace if isinstance(namespace, str) and namespace else 'default'}/{name}{_SCOPED}"
    label = next((labels[key] for key in names.GROUP_LABELS if labels.get(key)), "")
    if let_in:
        key = annotations.get(names.GANG_OF_ANNOTATION, "")
        if not key.startswith(whose):
            return None
    else:
        if not _for_its_queue_alone(
            annotations.get(names.GROUP_NAME_ANNOTATION, ""), metadata.get("uid"), owner
        ):
            return None
        key = f"{whose}{label or (owner.uid if owner is not None else '')}"
    problem = ""
    for annotation, wrong in (
        (names.GANG_NAME_ANNOTATION, name_problem(name)),
        (names.GANG_SIZE_ANNOTATION, size_problem(size)),
    ):
        problem = problem or (f"{annotation} {wrong}" if wrong else "")
    return Gang(key, name, 0 if problem else int(size), None if label else owner, problem)


def starts_with(
    key: str, annotations: Mapping[str, str], uid: str, owner: Owner | None, *, let_in: bool
) -> bool:
    """Whether a pod that names this PodGroup of Kubernetes, and no gang, starts with it: not where somebody names one of Volcano's.

    Of a pod that was `let_in` that is on record. Of those that earlier versions let in it is not.
    """
    group = annotations.get(names.GROUP_NAME_ANNOTATION, "")
    if not let_in:
        return _for_its_queue_alone(group, uid, owner)
    recorded = annotations.get(names.GANG_OF_ANNOTATION)
    return not group if recorded is None else recorded == key


def _for_its_queue_alone(group: str, uid: object, owner: Owner | None) -> bool:
    """Whether a PodGroup, if there is any, is one that Volcano's controllers make for a pod or an owner that has none."""
    return group in ("", f"podgroup-{uid}", f"podgroup-{owner.uid}" if owner is not None else "")


def name_problem(text: str) -> str:
    """What is wrong with the name of a gang, as the end of a sentence; empty when it is one."""
    good = 0 < len(text) <= LONGEST_NAME and {text[0], text[-1]} <= _LETTERS and set(text) <= _BETWEEN
    if good:
        return ""
    return (
        f"must be 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    )


def size_problem(text: str) -> str:
    """What is wrong with the size of a gang, as the end of a sentence; empty when it is one.

    No sign, no space, no digits of other scripts: a size that two readers read differently is none.
    """
    plain = 0 < len(text) <= _SIZE_DIGITS and set(text) <= _DIGITS and text[0] != "0"
    if plain and int(text) <= MOST_MEMBERS:
        return ""
    return f'must be a whole number from 1 to {MOST_MEMBERS} in plain digits, such as "4"'
