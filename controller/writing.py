"""The one call by which the controller changes the cluster."""

from typing import Protocol

from kube.client import Json, JsonPatch, PatchType
from kube.resources import Resource


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
