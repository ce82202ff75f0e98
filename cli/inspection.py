"""What is looked at of a live installation beside the objects that decisions are made of."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cli import installation
from cli import leader as leading
from cli.errors import UnavailableError
from core import names
from core.settings import Settings
from kube import connection, resources
from kube.client import Client
from kube.errors import ApiError, ConnectionFailed, Forbidden, KubeError, NotFound
from kube.resources import Resource, Scope

Raw = Mapping[str, Any]

_PROBE: Final = "cardquota-verify-"
_METRICS_PORT: Final = 8080
_PROBED_CARD: Final = "cardquota-verify"


@dataclass(slots=True)
class Inspection:
    """The objects of an installation, and what came of a pod that was created for show. None is what may not be read."""

    configurations: Mapping[str, Raw | None] | None = None
    """Of webhooks, by kind; None for one that does not exist."""
    policies: tuple[Raw, ...] | None = None
    bindings: tuple[Raw, ...] | None = None
    deployments: tuple[Raw, ...] | None = None
    pods: tuple[Raw, ...] | None = None
    probe: Raw | None = None
    """The pod as it would be stored."""
    probe_failure: str = ""
    """Why nothing would be stored, in the words of the API server."""
    namespace: str = ""
    """Where the pod was to be created."""
    books: Mapping[str, Any] = field(default_factory=dict)
    """The leader's figures, as it tells them."""
    books_failure: str = ""
    page: str | None = None
    """The leader's metrics."""
    page_failure: str = ""
    withheld: dict[str, str] = field(default_factory=dict)
    """What may not be read -> why."""


def read(
    kubeconfig: Path | None, context: str | None, home: str, settings: Settings, leader: str
) -> Inspection:
    """Inspects the installation in a namespace; `leader` is who holds the Lease. Raises UnavailableError."""
    try:
        return asyncio.run(_read(kubeconfig, context, home, settings, leader))
    except KubeError as error:
        raise UnavailableError(str(error)) from error


async def _read(
    kubeconfig: Path | None, context: str | None, home: str, settings: Settings, leader: str
) -> Inspection:
    found = Inspection(namespace=connection.namespace_of(kubeconfig, context))
    async with await Client.connect(kubeconfig, context) as client:

        async def allowed(what: str, answer: Awaitable[Any]) -> Any:
            try:
                return await answer
            except Forbidden as error:
                found.withheld[what] = str(error)
                return None

        found.configurations = await allowed("webhook configurations", _configurations(client))
        found.policies = await allowed("policies", _listed(client, resources.ADMISSION_POLICIES))
        found.bindings = await allowed("policies", _listed(client, resources.ADMISSION_POLICY_BINDINGS))
        found.deployments = await allowed(
            "versions", _listed(client, resources.DEPLOYMENTS, home, installation.SELECTOR)
        )
        found.pods = await allowed("versions", _listed(client, resources.PODS, home, installation.SELECTOR))
        await _probe(client, settings, found)
        await _books(client, home, leader, found)
    return found


def books(kubeconfig: Path | None, context: str | None, home: str, leader: str) -> Inspection:
    """The leader's figures once more, and nothing else. Raises UnavailableError."""

    async def again() -> Inspection:
        found = Inspection()
        async with await Client.connect(kubeconfig, context) as client:
            try:
                found.pods = await _listed(client, resources.PODS, home, installation.SELECTOR)
            except Forbidden as error:
                # They are needed for the metrics alone.
                found.withheld["versions"] = str(error)
            await _books(client, home, leader, found)
        return found

    try:
        return asyncio.run(again())
    except KubeError as error:
        raise UnavailableError(str(error)) from error


async def _configurations(client: Client) -> dict[str, Raw | None]:
    return {
        "mutating": await _if_there(client, resources.MUTATING_WEBHOOKS, "cardquota-mutating"),
        "validating": await _if_there(client, resources.VALIDATING_WEBHOOKS, "cardquota-validating"),
    }


async def _if_there(client: Client, resource: Resource, name: str) -> Raw | None:
    try:
        return await client.get(resource, name)
    except NotFound:
        return None


async def _listed(
    client: Client, resource: Resource, namespace: str | None = None, selector: str | None = None
) -> tuple[Raw, ...]:
    pages = client.list(resource, Scope(namespace, selector))
    return tuple([raw async for page in pages for raw in page.items])


async def _probe(client: Client, settings: Settings, found: Inspection) -> None:
    """Has a pod with a card go through admission, and nothing stored."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": _PROBE,
            "namespace": found.namespace,
            "annotations": {names.CARD_NAME_ANNOTATION: _PROBED_CARD},
        },
        "spec": {
            "schedulerName": settings.scheduler_names[0],
            "containers": [
                {"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
            ],
        },
    }
    try:
        found.probe = await client.create(resources.PODS, pod, found.namespace, dry_run=True)
    except ApiError as error:
        found.probe_failure = str(error)


async def _books(client: Client, home: str, leader: str, found: Inspection) -> None:
    """What the leader says itself; else its metrics, which show less."""
    try:
        found.books, found.books_failure = await leading.asked(client, home, "books")
    except (ApiError, ConnectionFailed) as error:
        found.books_failure = leading.why_not(error, home)
    if not found.books:
        await _page(client, home, leader, found)


async def _page(client: Client, home: str, leader: str, found: Inspection) -> None:
    """The leader's page of metrics, by way of the API server, which knows who may see it."""
    holder = next((name for name in _names(found.pods) if leader.startswith(name)), "")
    if not holder:
        found.page_failure = found.withheld.get("versions", "no pod has the name that is in the Lease")
        return
    pod = resources.PODS.path(home, f"http:{holder}:{_METRICS_PORT}", "proxy")
    try:
        found.page = await client.read_text(f"{pod}/metrics")
    except (ApiError, ConnectionFailed) as error:
        found.page_failure = str(error)


def _names(pods: tuple[Raw, ...] | None) -> list[str]:
    return [str(raw["metadata"]["name"]) for raw in pods or ()]
