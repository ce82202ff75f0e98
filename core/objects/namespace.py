"""The namespace: it may name the queue of its pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and the queue its annotation names; empty when there is none."""

    name: str
    queue: str


def project(raw: Mapping[str, Any]) -> Namespace:
    """The view of a v1 Namespace."""
    metadata = read.mapping(raw, "metadata")
    return Namespace(
        name=read.text(metadata, "name"),
        queue=read.texts(metadata, "annotations").get(names.QUEUE_NAME_ANNOTATION, ""),
    )
