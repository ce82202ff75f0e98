"""What the leading controller would do about certificates, once, for installations without one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from controller.hook_paths import HOOK_ENTRY, PLAIN_PATH, SECRET_MARK
from kube.authority import Authority, Places
from kube.certificates import LOCAL_NAMES
from kube.client import Client
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

_RESOURCES = {item.kind: item for item in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


def certify(
    kubeconfig: Path,
    namespace: str,
    secrets: tuple[str, str],
    hosts: Sequence[str],
    configurations: Sequence[tuple[str, str]],
) -> None:
    """Fill the Secrets (the webhook's comes first) and have the API server trust who issued what is in them."""
    shared, own = secrets
    places = Places(
        namespace=namespace,
        secret=own,
        shared=shared,
        names=(*hosts, *LOCAL_NAMES),
        shared_names=(*hosts, *LOCAL_NAMES),
        configurations=[(_RESOURCES[kind], name) for kind, name in configurations],
        hook=HOOK_ENTRY,
        plain=PLAIN_PATH,
        mark=SECRET_MARK,
    )
    asyncio.run(_once(kubeconfig, places))


async def _once(kubeconfig: Path, places: Places) -> None:
    async def none_before() -> bool:
        return False

    async with await Client.connect(kubeconfig) as client:
        await Authority(client, places, none_before).reconcile()
