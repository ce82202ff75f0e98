"""The DeviceClass: quota needs to know that it exists, and which extended resource its devices serve."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.objects import raw as read

_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass. `created` is in microseconds since 1970; `extended` is the resource it serves, empty for none.

    `drivers` are those that its selectors name outright; an expression can ask for a driver in ways that nobody sees from
    outside.
    """

    name: str
    created: int = 0
    extended: str = ""
    drivers: tuple[str, ...] = ()


def project(raw: Mapping[str, Any]) -> DeviceClass:
    """The view of a resource.k8s.io DeviceClass of any served version."""
    metadata, spec = read.mapping(raw, "metadata"), read.mapping(raw, "spec")
    expressions = [
        read.text(read.mapping(one, "cel"), "expression") for one in read.sequence(spec, "selectors")
    ]
    return DeviceClass(
        name=read.text(metadata, "name"),
        created=read.timestamp(metadata.get("creationTimestamp")),
        extended=read.text(spec, "extendedResourceName"),
        drivers=tuple(driver for text in expressions for driver in _DRIVER.findall(text)),
    )
