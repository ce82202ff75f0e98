"""The DeviceClass: all that quota needs to know is that it exists."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass."""

    name: str


def project(raw: Mapping[str, Any]) -> DeviceClass:
    """The view of a resource.k8s.io DeviceClass of any served version."""
    return DeviceClass(name=read.text(read.mapping(raw, "metadata"), "name"))
