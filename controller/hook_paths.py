"""Where the binding hook is served: at a path that only the API server is told, so that nobody else books cards.

Every replica follows the Secret that the segment is kept in, and reads it anew when it is asked at one that it does not
know: so each serves a path from the moment that it is stored, which is before the API server hears of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

from kube import errors
from kube.certificates import Content, content
from kube.client import Client
from kube.informer import Informer
from kube.resources import PODS, SECRETS, Scope
from kube.segments import LENGTH, Segments, held_in
from kube.webhook_entries import Entries

PLAIN_PATH: Final = "/mutate/bindings"
HOOK_ENTRY: Final = "bindings.cardquota.io"

PLAIN_FOR_S: Final = 60.0
"""How long the plain path is served after the configuration ceased to name it: not every API server has heard of it."""

_READ_TIMEOUT_S = 2.0
_READ_EACH_S = 1.0

SECRET_MARK: Final = "cardquota.io/hook-path"  # noqa: S105 - a label
"""The label of pods that serve the path in the Secret, and of the configuration that comes with them; the first release's lack it."""
_FORMER: Final = (
    "app.kubernetes.io/name=cardquota,app.kubernetes.io/component=controller," + SECRET_MARK + "!=secret"
)


class HookPaths:
    """Which paths are served now. `read` returns what the Secret holds; raises KubeError."""

    def __init__(self, read: Callable[[], Awaitable[Content]]) -> None:
        self._read = read
        self._segments: Segments | None = None
        self._plain_until: float | None = None
        self._plain = False
        self._turn = asyncio.Lock()
        self._read_at = float("-inf")
        self._reads = 0

    def follow_secret(self, secret: Informer[Content]) -> None:
        """Keeps up with the Secret of the segment from now on."""
        secret.subscribe(lambda _, new: self._learn(new))

    def follow_configuration(self, configuration: Informer[Entries]) -> None:
        """Keeps up with a webhook configuration, which may have the entry of the hook or not."""
        configuration.subscribe(self._told)

    def plain(self) -> bool:
        """Whether the path of the first release is served: as long as the API server may still be told to call it."""
        until = self._plain_until
        return self._plain or (until is not None and asyncio.get_running_loop().time() < until)

    async def serves(self, segment: str) -> bool:
        """Whether the hook is served at this segment. One that nobody knows costs one reading of the Secret a second."""
        if self._holds(segment):
            return True
        if len(segment) != LENGTH:
            return False
        asked = self._reads
        async with self._turn:
            # Whoever waited for a reading that began after this question need not have another one.
            if not self._holds(segment) and self._reads <= asked:
                await self._read_again()
        return self._holds(segment)

    async def _read_again(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._read_at + _READ_EACH_S - loop.time()))
        self._read_at = loop.time()
        self._reads += 1
        try:
            self._learn(await self._read())
        except errors.KubeError:
            # The API server that asks here will ask again; what was known before goes on.
            return

    def _holds(self, segment: str) -> bool:
        return self._segments is not None and self._segments.holds(segment)

    def _learn(self, secret: Content | None) -> None:
        """Takes in what the Secret holds; one that is emptied or deleted changes nothing."""
        found = None if secret is None else held_in(secret)
        self._segments = found or self._segments

    def _told(self, old: Entries | None, new: Entries | None) -> None:
        named, names = (_names_plain(view) for view in (old, new))
        if names:
            self._plain = True
        elif named:
            self._plain = False
            self._plain_until = asyncio.get_running_loop().time() + PLAIN_FOR_S


def _names_plain(configuration: Entries | None) -> bool:
    return configuration is not None and configuration.path_of(HOOK_ENTRY) == PLAIN_PATH


def reading(client: Client, namespace: str, secret: str) -> Callable[[], Awaitable[Content]]:
    """How the Secret is read, for HookPaths."""

    async def read() -> Content:
        return content(await client.get(SECRETS, secret, namespace, timeout_s=_READ_TIMEOUT_S))

    return read


def former_replicas(client: Client, namespace: str) -> Callable[[], Awaitable[bool]]:
    """Asks whether controllers of the first release run in a namespace, which serve the plain path alone."""

    async def run() -> bool:
        now = datetime.now(UTC)
        async with aclosing(client.list(PODS, Scope(namespace, label_selector=_FORMER))) as pages:
            async for page in pages:
                if any(_serves(raw, now) for raw in page.items):
                    return True
        return False

    return run


def _serves(raw: dict[str, object], now: datetime) -> bool:
    """Whether a pod may still be asked; one that is deleted until its grace has passed."""
    status, head = raw.get("status") or {}, raw["metadata"]
    assert isinstance(status, dict)
    assert isinstance(head, dict)
    if status.get("phase") in {"Succeeded", "Failed"}:
        return False
    ends = head.get("deletionTimestamp")
    return ends is None or datetime.fromisoformat(ends) > now
