"""The DeviceClass: quota needs to know that it exists, and which extended resource its devices serve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass. `created` is in microseconds since 1970; `extended` is the resource it serves, empty for none."""

    name: str
    created: int = 0
    extended: str = ""


def project(raw: Mapping[str, Any]) -> DeviceClass:
    """The view of a resource.k8s.io DeviceClass of any served version."""
    metadata = read.mapping(raw, "metadata")
    return DeviceClass(
        name=read.text(metadata, "name"),
        created=read.timestamp(metadata.get("creationTimestamp")),
        extended=read.text(read.mapping(raw, "spec"), "extendedResourceName"),
    )
