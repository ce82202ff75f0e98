"""The calls by which the controller changes the cluster, and looks at what became of it."""

from typing import Protocol

from kube.client import Json, JsonPatch, PatchType
from kube.resources import Resource


class Reader(Protocol):
    """The get call of kube.client.Client."""

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.get."""


class Patcher(Protocol):
    """The patch call of kube.client.Client."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Json | JsonPatch,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        subresource: str | None = None,
        field_manager: str | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        """See Client.patch."""


class LiftClient(Patcher, Reader, Protocol):
    """What lifting a gate takes: a write, a look at what became of it, and at what it rests on."""

    async def serves(self, resource: Resource, *, timeout_s: float = 10.0) -> bool:
        """See Client.serves."""
