"""The Volcano PodGroup: pods that start together, and the queue they charge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read
from core.objects.pod import Owner, controlling_owner


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup. `min_resources` in thousandths, None when the object does not set them."""

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

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


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
