"""Pods that start together: PodGroups of Volcano, with the queue they charge, and of Kubernetes, and gangs that only members know of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core import names
from core.objects import group_key
from core.objects import raw as read
from core.objects.gang import NO_SCOPE, Gang
from core.objects.owner import Owner, controlling_owner

MOST_TASKS: Final = 500
"""With more tasks that have a minimum of their own, `minMember` alone counts: each of them is looked at for every member that
changes. A Volcano Job of more tasks is refused where it is written."""


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
    queue: str
    min_member: int
    min_task_member: Mapping[str, int]
    min_resources: Mapping[str, int] | None
    card_request: str
    phase: str
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
        queue="",
        min_member=sizes[1],
        min_task_member={},
        min_resources=None,
        card_request="",
        phase="",
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
        queue="",
        min_member=max(1, read.integer(read.mapping(raw, "spec", "schedulingPolicy", "gang"), "minCount")),
        min_task_member={},
        min_resources=None,
        card_request="",
        phase="",
        kubernetes=True,
    )
