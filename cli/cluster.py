"""The objects a command works on: from a file with `--state`, else from the live cluster."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import output
from cli.errors import UnavailableError

if TYPE_CHECKING:
    from cli.state import State
    from core.settings import Settings
    from kube.reflector import ListWatch
    from kube.resources import Resource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--state FILE`, and the way to a live cluster: `--kubeconfig FILE`, `--context NAME`."""
    add_state(parser, "cluster objects (YAML or JSON), - for standard input; default: the live cluster")
    add_live(parser)


def add_live(parser: argparse.ArgumentParser) -> None:
    """The way to a live cluster alone."""
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="the way to the live cluster")
    parser.add_argument("--context", metavar="NAME", help="the context in the kubeconfig")


def add_state(parser: argparse.ArgumentParser, text: str) -> None:
    """`--state FILE` alone, for commands that never ask a live cluster."""
    parser.add_argument("--state", metavar="FILE", help=text)


def load(options: argparse.Namespace, settings: "Settings") -> "State":
    """The state that the arguments name, with what is new in a file created. Raises InputError or UnavailableError."""
    if options.state is not None:
        return created(from_file(options.state), settings)
    return _live(options.kubeconfig, options.context)


def created(state: "State", settings: "Settings") -> "State":
    """The state with what is new in it created; what admission would refuse goes to standard error. Raises InputError."""
    from cli.creation import as_created

    found = as_created(state, settings)
    for key, (_, message) in found.refused.items():
        print(
            f"warning: pod {output.printable(key)} would be refused: {output.printable(message)}",
            file=sys.stderr,
        )
    return found


def from_file(name: str) -> "State":
    """The state in a file; what the reader should know about it goes to standard error. Raises InputError."""
    from cli import state

    found = state.load(name)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return found


def _live(kubeconfig: Path | None, context: str | None) -> "State":
    from dataclasses import replace

    from cli import state

    objects, claims_served = _list_all(kubeconfig, context)
    return replace(state.build(objects, "cluster"), claims_served=claims_served)


def objects(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The objects of the live cluster as they are. Raises UnavailableError."""
    return _list_all(options.kubeconfig, options.context)[0]


def _list_all(kubeconfig: Path | None, context: str | None) -> tuple[list[dict[str, Any]], bool]:
    import asyncio

    from kube.errors import KubeError

    try:
        return asyncio.run(_listed(kubeconfig, context))
    except KubeError as error:
        raise UnavailableError(str(error)) from error


async def _listed(kubeconfig: Path | None, context: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Every object of the kinds that decisions look at, and whether there are claims at all. Raises KubeError."""
    from kube import resources
    from kube.client import Client
    from kube.versions import BestVersion

    kinds = (
        resources.NODES,
        resources.NAMESPACES,
        resources.QUEUES,
        resources.PODGROUPS,
        resources.VOLCANO_JOBS,
        resources.PODS,
    )
    async with await Client.connect(kubeconfig, context) as client:
        any_version, claims = (BestVersion(client, resources.DEVICE_VERSIONS) for _ in range(2))
        objects = [
            *[raw for resource in kinds for raw in await _list(client, resource)],
            *await _list(any_version, resources.DEVICE_CLASSES),
            *await _list(claims, resources.RESOURCE_CLAIMS),
            *await _list(any_version, resources.RESOURCE_CLAIM_TEMPLATES),
        ]
        return objects, claims.served


async def _list(client: "ListWatch", resource: "Resource") -> list[dict[str, Any]]:
    """All objects of one kind; none where the API server does not serve it, as before Volcano's CRDs are installed."""
    from kube.errors import NotFound

    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    try:
        # Items of a list need not name their kind.
        return [{**kind, **raw} async for page in client.list(resource) for raw in page.items]
    except NotFound:
        return []
