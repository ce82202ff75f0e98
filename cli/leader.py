"""What the leader is asked, by way of the API server: it knows what people may not list, and tells what they may know."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from cli import installation
from core.names import ANSWERS_ROOT, TOKEN_HEADER
from kube import resources
from kube.client import Client
from kube.errors import Forbidden, KubeError, NotFound

_SERVICE: Final = "https:cardquota-controller:answers"
_WITHOUT_TOKEN: Final = "your kubeconfig shows no token, and the leader knows people by nothing else"  # noqa: S105


def ask(kubeconfig: Path | None, context: str | None, home: str, question: str) -> tuple[dict[str, Any], str]:
    """The answer, and why there is none where it is empty; `home` is the namespace of the installation."""
    try:
        return asyncio.run(_ask(kubeconfig, context, home, question))
    except NotFound as error:
        return {}, f"there is no such port: {error}" if "services" in str(error) else str(error)
    except KubeError as error:
        return {}, why_not(error, home)


def why_not(error: KubeError, home: str) -> str:
    """Why there is no answer; where the right to ask is missing, what gives it. The leader's own refusals are no Status."""
    if not isinstance(error, Forbidden) or not error.reason:
        return str(error)
    return (
        f"{error}; the right is in the Role {installation.READER} in namespace {home} (beside the ClusterRole of that name), "
        "which the value queueReader.groups of the chart binds to groups"
    )


async def _ask(
    kubeconfig: Path | None, context: str | None, home: str, question: str
) -> tuple[dict[str, Any], str]:
    async with await Client.connect(kubeconfig, context) as client:
        return await asked(client, home, question)


async def asked(client: Client, home: str, question: str) -> tuple[dict[str, Any], str]:
    """The same of a client at hand. Raises KubeError.

    The API server keeps the usual header with the token for itself, so that stands in another one, too.
    """
    token = await client.bearer_token()
    if not token:
        return {}, _WITHOUT_TOKEN
    path = f"{resources.SERVICES.path(home, _SERVICE, 'proxy')}{ANSWERS_ROOT}{question}"
    text = await client.read_text(path, headers={TOKEN_HEADER: token})
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    return (answer, "") if isinstance(answer, dict) else ({}, "what answered is no controller")
