"""The objects of a live cluster, as far as the caller may list them."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cli import installation
from cli.errors import UnavailableError
from core import names
from core.objects import kinds
from kube import connection, resources
from kube.client import Client
from kube.errors import Forbidden, KubeError, NotFound
from kube.reflector import ListWatch
from kube.resources import Resource, Scope
from kube.versions import BestVersion

Raw = dict[str, Any]

PATIENCE_S: Final = 2.0
"""After so long a reader is told what is under way, and again after each such time."""

RIGHTS: Final = "have somebody with these rights write `cardquota dump -o FILE`, and use --state FILE"

_PAGE: Final = 500
_EVENTS: Final = Resource("", "v1", "events", True, "Event")
"""In the form that the role `edit` may read."""


@dataclass(slots=True)
class Reading:
    """What was read, and what was not."""

    objects: list[Raw] = field(default_factory=list)
    claims_served: bool = True
    """Whether claims exist as a kind."""
    kubernetes_groups_served: bool = True
    """Whether PodGroups of Kubernetes itself do."""
    forbidden: dict[str, Forbidden] = field(default_factory=dict)
    """Kind -> why nothing of it could be listed."""
    narrowed: list[Resource] = field(default_factory=list)
    """Those of which only those of `namespace` could be listed."""
    namespace: str = ""
    home: str = ""
    """Where the installation was looked for, without the right to look everywhere."""
    unled: str = ""
    """Why nobody leads the installation; empty where somebody does or nothing is known of it."""

    @property
    def unseen(self) -> frozenset[str]:
        """The kinds of which it is not known what there is: with the pods of all those of one namespace are not enough."""
        partly = () if self.pods_of else (resource.kind for resource in self.narrowed)
        return frozenset({*self.forbidden, *partly})

    @property
    def pods_of(self) -> str:
        """The only namespace whose pods are known; empty where those of all are."""
        return self.namespace if resources.PODS in self.narrowed else ""


def read(kubeconfig: Path | None, context: str | None, namespace: str | None = None) -> Reading:
    """All that decisions look at, with the installation's settings and Lease.

    What may not be listed in all namespaces is listed in this one, by default the one that the kubeconfig names. Raises UnavailableError where nothing could be.
    """
    try:
        return asyncio.run(_read(kubeconfig, context, namespace))
    except Forbidden as error:
        raise UnavailableError(str(error), RIGHTS) from error
    except KubeError as error:
        raise UnavailableError(str(error)) from error


def namespace_of(kubeconfig: Path | None, context: str | None) -> str:
    """The namespace of what names none, as the kubeconfig has it. Raises UnavailableError."""
    try:
        return connection.namespace_of(kubeconfig, context)
    except KubeError as error:
        raise UnavailableError(str(error)) from error


def settings(kubeconfig: Path | None, context: str | None) -> Reading:
    """Nothing but the installation's settings and Lease. Raises UnavailableError."""
    try:
        return asyncio.run(_settings(kubeconfig, context))
    except KubeError as error:
        raise UnavailableError(str(error)) from error


async def _settings(kubeconfig: Path | None, context: str | None) -> Reading:
    async with await Client.connect(kubeconfig, context) as client:
        reader = _Reader(client, connection.namespace_of(kubeconfig, context))
        await reader.read_installation()
        return reader.reading


async def _read(kubeconfig: Path | None, context: str | None, namespace: str | None) -> Reading:
    async with await Client.connect(kubeconfig, context) as client:
        reader = _Reader(client, namespace or connection.namespace_of(kubeconfig, context))
        any_version, claims = (BestVersion(client, kinds.CLAIM.versions) for _ in range(2))
        for resource, source in (
            (resources.NODES, client),
            (resources.NAMESPACES, client),
            (resources.QUEUES, client),
            (resources.PODGROUPS, client),
            (resources.VOLCANO_JOBS, client),
            (resources.PODS, client),
            (resources.DEVICE_CLASSES, any_version),
            (resources.RESOURCE_CLAIMS, claims),
            (resources.RESOURCE_CLAIM_TEMPLATES, any_version),
        ):
            await reader.read(source, resource)
        # Asked first, for who may not list what is not there is told that he may not.
        reader.reading.kubernetes_groups_served = await client.serves(resources.KUBERNETES_PODGROUPS)
        if reader.reading.kubernetes_groups_served:
            await reader.read(client, resources.KUBERNETES_PODGROUPS)
        if not reader.reading.objects and reader.reading.forbidden:
            raise next(iter(reader.reading.forbidden.values()))
        # Without rights to the claims nobody knows that there are none.
        reader.reading.claims_served = (
            claims.served or resources.RESOURCE_CLAIMS.kind in reader.reading.forbidden
        )
        await reader.read_installation()
        return reader.reading


def said_of(kubeconfig: Path | None, context: str | None, namespace: str, uid: str) -> dict[str, str]:
    """Reason, message and time of the controller's last event about a pod; nothing where there is none, or no right to read it."""
    try:
        return asyncio.run(_said_of(kubeconfig, context, namespace, uid))
    except (Forbidden, NotFound):
        return {}
    except KubeError as error:
        raise UnavailableError(str(error)) from error


async def _said_of(kubeconfig: Path | None, context: str | None, namespace: str, uid: str) -> dict[str, str]:
    last = ("", "", "")
    async with await Client.connect(kubeconfig, context) as client:
        async for page in client.list(_EVENTS, Scope(namespace), limit=_PAGE):
            for raw in page.items:
                about, by = raw.get("involvedObject") or {}, raw.get("reportingComponent")
                if about.get("uid") == uid and by == names.FIELD_MANAGER:
                    series = raw.get("series") or {}
                    at = series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("eventTime")
                    last = max(last, (str(at or ""), str(raw.get("reason")), str(raw.get("message"))))
    return dict(zip(("at", "reason", "message"), last, strict=True)) if last[0] else {}


class _Reader:
    """Lists kind after kind, and tells on standard error how far it is when that takes long."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.reading = Reading(namespace=namespace)
        self._told = time.monotonic()

    async def read(self, source: ListWatch, resource: Resource) -> None:
        """All objects of one kind; none where the API server does not serve it, as before Volcano's CRDs are installed."""
        try:
            self.reading.objects += [raw async for raw in self._listed(source, resource, None)]
        except NotFound:
            return
        except Forbidden as error:
            if not resource.namespaced:
                self.reading.forbidden[resource.kind] = error
                return
            try:
                found = [raw async for raw in self._listed(source, resource, self.reading.namespace)]
            except Forbidden:
                self.reading.forbidden[resource.kind] = error
            else:
                self.reading.narrowed.append(resource)
                self.reading.objects += found

    async def read_installation(self) -> None:
        """The settings of every installation, and the Lease of the first."""
        reading = self.reading
        resource = resources.CONFIG_MAPS
        try:
            found = [
                raw
                async for raw in self._listed(self._client, resource, None, selector=installation.SELECTOR)
            ]
        except Forbidden as error:
            reading.home = await self._home()
            try:
                found = [await self._get(resource, reading.home)]
            except (Forbidden, NotFound):
                reading.forbidden[resource.kind] = error
                return
            found += await self._usage(reading.home)
        reading.objects += filter(installation.is_usage, found)
        found = sorted(filter(installation.is_settings, found), key=installation.namespace_of)
        reading.objects += found
        if not found:
            return
        try:
            lease = await self._get(resources.LEASES, installation.namespace_of(found[0]))
        except Forbidden:
            return
        except NotFound:
            lease = None
        if lease is not None:
            reading.objects.append(lease)
        reading.unled = installation.leaderless(lease, datetime.now(UTC))

    async def _home(self) -> str:
        try:
            role = await self._client.get(resources.CLUSTER_ROLES, installation.READER)
        except (Forbidden, NotFound):
            role = {}
        return installation.home_by(role)

    async def _get(self, resource: Resource, namespace: str, name: str = installation.NAME) -> Raw:
        return _typed(resource, await self._client.get(resource, name, namespace))

    async def _usage(self, namespace: str) -> list[Raw]:
        try:
            return [await self._get(resources.CONFIG_MAPS, namespace, installation.USAGE_NAME)]
        except (Forbidden, NotFound):
            return []

    async def _listed(
        self, source: ListWatch, resource: Resource, namespace: str | None, *, selector: str | None = None
    ) -> AsyncIterator[Raw]:
        count = 0
        async for page in source.list(resource, Scope(namespace, selector), limit=_PAGE):
            for raw in page.items:
                yield _typed(resource, raw)
            count += len(page.items)
            if time.monotonic() - self._told > PATIENCE_S:
                self._told = time.monotonic()
                print(f"reading the cluster: {count} {resource.plural}", file=sys.stderr)


def _typed(resource: Resource, raw: Raw) -> Raw:
    """Items of a list need not name their kind."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **raw}


def warnings(reading: Reading) -> list[str]:
    """What the reader of an answer should know of what it rests on."""
    told = []
    if reading.forbidden:
        kinds = ", ".join(sorted(reading.forbidden))
        told.append(f"without the right to list {kinds}: what depends on them is left out")
    if reading.narrowed:
        told.append(
            f"without the right to list {', '.join(map(str, reading.narrowed))} in all namespaces: only those of namespace "
            f"{reading.namespace} are known, and nothing of what others hold or wait for"
        )
    return told
