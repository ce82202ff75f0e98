"""The calls of kube.client.Client one by one, for those who make no others and for what stands in for it."""

from typing import Protocol

from kube.client import Json, JsonPatch, PatchType
from kube.resources import Resource


class Reader(Protocol):
    """Who reads objects."""

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.get."""


class Patcher(Protocol):
    """Who patches objects."""

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
        dry_run: bool = False,
        timeout_s: float = 10.0,
    ) -> Json:
        """See Client.patch."""


class Deleter(Protocol):
    """Who deletes objects."""

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        """See Client.delete."""


class LiftClient(Patcher, Reader, Protocol):
    """What lifting a gate takes: a write, a look at what became of it, and at what it rests on."""

    async def serves(self, resource: Resource, *, timeout_s: float = 10.0) -> bool:
        """See Client.serves."""
