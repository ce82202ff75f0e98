"""The ResourceClaimTemplate: what each pod that names it gets a ResourceClaim of its own for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.objects import raw as read
from core.objects.claim import DeviceRequest, requests_of


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A ResourceClaimTemplate and the requests of the claims that are made from it."""

    namespace: str
    name: str
    uid: str
    requests: tuple[DeviceRequest, ...]

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def project(raw: Mapping[str, Any]) -> ClaimTemplate:
    """The view of a resource.k8s.io ResourceClaimTemplate of any served version."""
    metadata = read.mapping(raw, "metadata")
    return ClaimTemplate(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        requests=requests_of(read.mapping(raw, "spec", "spec")),
    )
