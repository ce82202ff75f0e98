"""Pods that start together: the Volcano PodGroup, with the queue they charge, and gangs that only their members know of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read
from core.objects.gang import NO_SCOPE, Gang
from core.objects.owner import Owner, controlling_owner


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup, or a gang by the annotations of its members.

    `min_resources` in thousandths, None when the object does not set them.
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
    sizes: tuple[int, int] | None = None
    """Where members of a gang disagree about its size, the smallest and the largest that they say; the largest counts."""

    @property
    def key(self) -> str:
        """`namespace/name` of a PodGroup, and the key of a gang."""
        return self.gang or f"{self.namespace}/{self.name}"

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
        return f"{'gang' if self.gang else 'PodGroup'} {self.namespace}/{self.name}"


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
    tasks = read.mapping(spec, "minTaskMember")
    return Group(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        created=read.timestamp(metadata.get("creationTimestamp")),
        owner=controlling_owner(metadata),
        queue=read.text(spec, "queue"),
        min_member=read.integer(spec, "minMember"),
        min_task_member={task: read.integer(tasks, task) for task, _ in read.entries(tasks)},
        min_resources=read.resources(spec, "minResources") if "minResources" in spec else None,
        card_request=read.texts(metadata, "annotations").get(names.CARD_REQUEST_ANNOTATION, ""),
        phase=read.text(read.mapping(raw, "status"), "phase"),
    )
