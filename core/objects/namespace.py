"""The namespace: it may name the queue of its pods, and queues are open to it or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import names
from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, the queue and the card that its annotations name (empty when they name none), and its labels."""

    name: str
    queue: str
    labels: Mapping[str, str]
    default_card: str = ""


def project(raw: Mapping[str, Any]) -> Namespace:
    """The view of a v1 Namespace."""
    metadata = read.mapping(raw, "metadata")
    name, annotations = read.text(metadata, "name"), read.texts(metadata, "annotations")
    return Namespace(
        name=name,
        queue=annotations.get(names.QUEUE_NAME_ANNOTATION, ""),
        labels={**read.texts(metadata, "labels"), names.NAMESPACE_NAME_LABEL: name},
        default_card=annotations.get(names.DEFAULT_CARD_ANNOTATION, ""),
    )
