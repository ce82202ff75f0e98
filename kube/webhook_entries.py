"""Our entries in the webhook configurations: what they say of where we are and whom to trust, and how that is put right."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from core import names
from kube import errors
from kube.client import Client, Json, JsonPatch, PatchType
from kube.informer import Informer
from kube.metrics import DEFAULT, Metrics
from kube.reflector import ListWatch
from kube.resources import Resource, Scope

_RACES = 5

Configuration = tuple[Resource, str]
"""A webhook configuration: which of the two resources, and its name."""

WantedPath = Callable[[str, str, Mapping[str, str]], str]
"""The path that an entry is to have, by its name, the path that it has, and the labels of its configuration."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a webhook entry says: base64 of the PEM that it trusts, and the path, both empty where it says nothing."""

    name: str
    ca_bundle: str
    path: str


@dataclass(frozen=True, slots=True)
class Entries:
    """Our entries in one configuration, in their order."""

    entries: tuple[Entry, ...]

    def path_of(self, name: str) -> str | None:
        """The path of an entry; None where there is no such entry."""
        return next((entry.path for entry in self.entries if entry.name == name), None)

    def trust(self, certificates: bytes, name: str) -> bool:
        """Whether the entry has these PEM certificates, perhaps beside others; one that is not there is no obstacle."""
        return all(certificates in _decoded(entry.ca_bundle) for entry in self.entries if entry.name == name)


def is_own(entry: Mapping[str, Any]) -> bool:
    """Whether a webhook entry is one of ours by its name, `<something>.cardquota.io`."""
    return str(entry.get("name", "")).endswith("." + names.OWN_PREFIX.rstrip("/"))


def project(raw: Json) -> Entries:
    """The view of a configuration."""
    own = [entry for entry in raw.get("webhooks") or [] if is_own(entry)]
    return Entries(tuple(_entry(entry) for entry in own))


def follow(client: ListWatch, configuration: Configuration, metrics: Metrics = DEFAULT) -> Informer[Entries]:
    """An informer of one configuration by its name; its only view has that name as its key."""
    resource, name = configuration
    return Informer(
        client,
        resource,
        lambda raw: project(raw) if raw["metadata"]["name"] == name else None,
        scope=Scope.named(name),
        metrics=metrics,
    )


async def put_right(
    client: Client, configuration: Configuration, ca_certificates: bytes, path: WantedPath
) -> int:
    """Gives our entries of a configuration this trust and their paths; how many had to be changed.

    Entries of others and what is right already are left alone, and a configuration that does not exist is passed over.
    Raises KubeError.
    """
    resource, name = configuration
    lost: errors.ApiError | None = None
    for _ in range(_RACES):
        try:
            raw = await client.get(resource, name)
        except errors.NotFound:
            return 0
        patch = _patch(raw, base64.b64encode(ca_certificates).decode(), path)
        if not patch:
            return 0
        try:
            await client.patch(resource, name, patch, patch_type=PatchType.JSON)
        except (errors.Invalid, errors.Conflict) as error:
            lost = error  # entries moved meanwhile: a failed `test` is answered as Invalid
            continue
        return sum(operation["op"] == "test" for operation in patch)
    raise lost or AssertionError("at least one try")


def _patch(raw: Json, ca_bundle: str, path: WantedPath) -> JsonPatch:
    """For each entry that is to be changed: that it still stands there, and what it is to say."""
    patch: JsonPatch = []
    labels = raw["metadata"].get("labels") or {}
    for index, entry in enumerate(raw.get("webhooks") or []):
        if not is_own(entry):
            continue
        place, client = f"/webhooks/{index}", entry.get("clientConfig") or {}
        changes: JsonPatch = []
        if client.get("caBundle") != ca_bundle:
            changes.append({"op": "add", "path": f"{place}/clientConfig/caBundle", "value": ca_bundle})
        has = _path_of(client)
        wanted = path(entry["name"], has, labels)
        if wanted != has:
            changes.append(_path_change(place, client, wanted))
        if changes:
            patch += [{"op": "test", "path": f"{place}/name", "value": entry["name"]}, *changes]
    return patch


def _path_change(place: str, client: Mapping[str, Any], path: str) -> Json:
    if "service" in client:
        return {"op": "add", "path": f"{place}/clientConfig/service/path", "value": path}
    url = urlsplit(client.get("url", ""))._replace(path=path, query="").geturl()
    return {"op": "add", "path": f"{place}/clientConfig/url", "value": url}


def _entry(raw: Mapping[str, Any]) -> Entry:
    client = raw.get("clientConfig") or {}
    return Entry(str(raw["name"]), str(client.get("caBundle") or ""), _path_of(client))


def _path_of(client: Mapping[str, Any]) -> str:
    if "service" in client:
        return str((client["service"] or {}).get("path") or "")
    return urlsplit(str(client.get("url") or "")).path


def _decoded(ca_bundle: str) -> bytes:
    try:
        return base64.b64decode(ca_bundle)
    except ValueError:
        return b""
