"""The namespace: it may name the queue of its pods, and queues are open to it or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, the queue its annotation names (empty when there is none), and its labels."""

    name: str
    queue: str
    labels: Mapping[str, str]


def project(raw: Mapping[str, Any]) -> Namespace:
    """The view of a v1 Namespace."""
    metadata = read.mapping(raw, "metadata")
    name = read.text(metadata, "name")
    return Namespace(
        name=name,
        queue=read.texts(metadata, "annotations").get(names.QUEUE_NAME_ANNOTATION, ""),
        labels={**read.texts(metadata, "labels"), names.NAMESPACE_NAME_LABEL: name},
    )
