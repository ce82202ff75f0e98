"""Pods that start together: PodGroups of Volcano, with the queue they charge, and of Kubernetes, and gangs that members alone name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core import names
from core.objects import group_key
from core.objects import raw as read
from core.objects.owner import Owner, controlling_owner

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

MOST_TASKS: Final = 500
"""With more tasks that have a minimum of their own, `minMember` alone counts: each of them is looked at for every member that
changes. A Volcano Job of more tasks is refused where it is written."""


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


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup, or a gang by the annotations of its members.

    `min_resources` in thousandths, None when the object does not set them. `queue` is empty where each member names its own.
    """

    namespace: str
    name: str
    uid: str
    created: int
    owner: Owner | None
    min_member: int
    queue: str = ""
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    min_resources: Mapping[str, int] | None = None
    card_request: str = ""
    phase: str = ""
    gang: str = ""
    """The key of a gang without PodGroup; empty of a PodGroup."""
    kubernetes: bool = False
    """Whether it is a PodGroup of Kubernetes itself and not of Volcano."""
    sizes: tuple[int, int] | None = None
    """Where members of a gang disagree about its size, the smallest and the largest that they say; the largest counts."""

    @property
    def key(self) -> str:
        """`namespace/name` of a PodGroup of Volcano, and what tells another one or a gang apart from all of those."""
        return self.gang or (group_key.kubernetes if self.kubernetes else group_key.volcano)(
            self.namespace, self.name
        )

    @property
    def unowned_gang(self) -> bool:
        """Whether it is a gang of pods that nobody owns and no label holds together: their name is all that they share."""
        return self.gang.endswith(NO_SCOPE)

    @property
    def stored(self) -> bool:
        """Whether there is an object of it in the cluster, of which something may be said."""
        return not self.gang

    @property
    def title(self) -> str:
        """What people call it."""
        if self.gang:
            return f"gang {self.namespace}/{self.name}"
        return pod_group_title(self.key)

    @property
    def minimum_field(self) -> str:
        """What the field of the object is called that says how many members start together."""
        return "minCount" if self.kubernetes else "minMember"


def pod_group_title(key: str) -> str:
    """What people call the PodGroup of this key."""
    of = f" of {names.KUBERNETES_GROUPS}" if group_key.is_kubernetes(key) else ""
    return f"PodGroup {group_key.object_key(key)}{of}"


def annotated(namespace: str, member: Gang, sizes: tuple[int, int], created: int) -> Group:
    """The gang of members that say these sizes, the first of whom was `created` then; `member` is any of them.

    The largest size counts: so no gang starts in part for one member that says less. It names no queue.
    """
    return Group(
        namespace=namespace,
        name=member.name,
        uid=f"gang/{member.key}",
        created=created,
        owner=member.owner,
        min_member=sizes[1],
        gang=member.key,
        sizes=sizes if sizes[0] < sizes[1] else None,
    )


def project(raw: Mapping[str, Any]) -> Group:
    """The view of a scheduling.volcano.sh/v1beta1 PodGroup."""
    metadata, spec = read.mapping(raw, "metadata"), read.mapping(raw, "spec")
    return Group(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        created=read.timestamp(metadata.get("creationTimestamp")),
        owner=controlling_owner(metadata),
        queue=read.text(spec, "queue"),
        min_member=read.integer(spec, "minMember"),
        min_task_member=_task_minimums(spec),
        min_resources=read.resources(spec, "minResources") if "minResources" in spec else None,
        card_request=read.texts(metadata, "annotations").get(names.CARD_REQUEST_ANNOTATION, ""),
        phase=read.text(read.mapping(raw, "status"), "phase"),
    )


def _task_minimums(spec: Mapping[str, Any]) -> Mapping[str, int]:
    tasks = read.mapping(spec, "minTaskMember")
    if len(tasks) > MOST_TASKS:
        return {}
    return {task: read.integer(tasks, task) for task, _ in read.entries(tasks)}


def project_kubernetes(raw: Mapping[str, Any]) -> Group:
    """The view of a scheduling.k8s.io/v1alpha2 PodGroup: who starts together. It names no queue, so each pod charges its own.

    With any other policy than `gang` each of its pods starts alone.
    """
    metadata = read.mapping(raw, "metadata")
    return Group(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        created=read.timestamp(metadata.get("creationTimestamp")),
        owner=controlling_owner(metadata),
        min_member=max(1, read.integer(read.mapping(raw, "spec", "schedulingPolicy", "gang"), "minCount")),
        kubernetes=True,
    )
