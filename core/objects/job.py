"""The Volcano Job: the queue of its pods and the cards it declares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class Job:
    """A batch.volcano.sh/v1alpha1 Job."""

    namespace: str
    name: str
    uid: str
    queue: str
    card_request: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def project(raw: Mapping[str, Any]) -> Job:
    """The view of a Volcano Job."""
    metadata = read.mapping(raw, "metadata")
    return Job(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        queue=read.text(read.mapping(raw, "spec"), "queue"),
        card_request=read.texts(metadata, "annotations").get(names.CARD_REQUEST_ANNOTATION, ""),
    )
