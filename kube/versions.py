"""What the API server serves, whatever release it is of: a resource in the best version, or whether a kind is there at all."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final, Protocol

from kube import errors
from kube.listing import Page, WatchEvent, Watching
from kube.reflector import ListWatch
from kube.resources import ALL, Resource, Scope

_LOG = logging.getLogger(__name__)
ANSWER_S: Final = 10.0
"""How long an answer is waited for."""
EVERY_S: Final = 60.0
"""How often it is asked: a kind comes with a setting of the API server, and as rarely."""


class BestVersion:
    """Stands between a reflector and its source (kube.reflector.ListWatch) for one resource.

    Each list looks for the version anew, best first, so a server that drops one, or brings a better one, is followed;
    the watch after it stays with what was found. NotFound only where none is served. `on_found` is told whether one is
    served, before the first object of each list.
    """

    def __init__(
        self,
        source: ListWatch,
        versions: Sequence[str],
        on_found: Callable[[bool], None] = lambda _served: None,
    ) -> None:
        self._source = source
        self._versions = versions
        self._on_found = on_found
        self._version: str | None = ""

    @property
    def served(self) -> bool:
        """Whether the last list found a version."""
        return bool(self._version)

    async def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page]:
        """The pages of one list in the best version."""
        missing: errors.NotFound | None = None
        for version in self._versions:
            pages = self._source.list(replace(resource, version=version), scope, limit=limit)
            begun = False
            try:
                async with aclosing(pages):
                    async for page in pages:
                        if not begun:
                            begun = True
                            self._found(resource, version)
                        yield page
            except errors.NotFound as error:
                if begun:
                    raise
                missing = error
            else:
                return
        self._found(resource, None)
        assert missing is not None, "there is at least one version"
        raise missing

    def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        """The changes in the version of the last list."""
        return self._source.watch(replace(resource, version=self._version or self._versions[0]), asked)

    def _found(self, resource: Resource, version: str | None) -> None:
        if version != self._version:
            _LOG.info(
                "version of resource", extra={"resource": str(resource), "version": version or "not served"}
            )
        self._version = version
        self._on_found(version is not None)


class Discovering(Protocol):
    """What of a client is called."""

    async def serves(self, resource: Resource, *, timeout_s: float) -> bool:
        """See kube.client.Client.serves."""


class Served:
    """Whether a kind is served of which nothing else is looked at: discovery tells, which everybody may ask.

    Asks while `run` runs. `served` is the last answer, None before the first.
    """

    def __init__(self, client: Discovering, resource: Resource) -> None:
        self._client = client
        self._resource = resource
        self.served: bool | None = None

    async def run(self) -> None:
        """Asks every now and then until cancelled."""
        while True:
            try:
                self.served = await self._client.serves(self._resource, timeout_s=ANSWER_S)
            except errors.KubeError as error:
                extra = {"resource": str(self._resource), "error": errors.describe(error)}
                _LOG.info("not known whether it is served", extra=extra)
            await asyncio.sleep(EVERY_S)
