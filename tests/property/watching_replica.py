"""A controller that lists and watches what is stored, by the informers that it has: late, in pages, cut off and refused."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from controller.caches import Caches
from kube import errors
from kube.listing import Page, WatchEvent, Watching
from kube.resources import ALL, Resource, Scope
from tests.builders.raw import Builder
from tests.fakes.livesource import LiveSource
from tests.property.takeover_replica import Replica, Runnable
from tests.property.takeover_world import INFORMERS, SETTINGS, Stored

_PAGE = 5


class Source(LiveSource):
    """One process's way to the API server. Lists take their time for each page; both end in errors as often as is stormy."""

    def __init__(self, stored: Stored) -> None:
        super().__init__()
        self._rng, self._stormy = stored.rng, stored.stormy

    async def list(
        self, resource: Resource, scope: Scope = ALL, *, limit: int = 500, **_: Any
    ) -> AsyncGenerator[Page]:
        fails_at = self._rng.randrange(3) if self._rng.random() < self._stormy else None
        number = 0
        async for page in super().list(resource, scope, limit=min(limit, _PAGE)):
            await asyncio.sleep(self._rng.choice((0.001, 0.05, 0.5)))
            if number == fails_at:
                raise errors.ServerError(500, "InternalError", "etcd", None, None)
            yield page
            number += 1

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        await asyncio.sleep(self._rng.choice((0.001, 0.05)))
        if self._rng.random() < self._stormy / 2:
            raise errors.Gone(410, "Expired", "too old", None, None)
        async for event in super().watch(resource, asked):
            if self._rng.random() < self._stormy / 20:
                raise errors.ConnectionFailed("cut")
            yield event


class WatchingReplica(Replica):
    """One that hears as much as its watches bring, in the order of the changes of each resource alone."""

    def __init__(self, stored: Stored) -> None:
        self.source = Source(stored)
        super().__init__(stored)

    def _follow(self) -> Caches:
        return Caches(self.source, SETTINGS)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Begins with its first complete list."""
        async with super().running():
            await self.caches.wait_synced()
            yield

    def _followed_by(self) -> Sequence[Runnable]:
        return (self.caches.run, self._follower.run, *self._runnables)

    def hear(self, most: int) -> None:
        """Its watches come on if it may hear of anything. They are not in step with one another."""
        if most == 0:
            self.source.behind = True
        else:
            self.source.come_on()

    def cut_off(self) -> None:
        """The connections of its watches die without a word."""
        self.source.cut_off()

    def happened(self, plural: str, key: str, built: Builder | None) -> None:
        self._show(plural, key, built)

    def _show(self, plural: str, key: str, built: Builder | None) -> None:
        resource = getattr(self.caches, INFORMERS[plural]).resource
        if built is None:
            namespace, _, name = key.rpartition("/")
            self.source.remove(resource, name, namespace, version=self.stored.version)
        else:
            raw = built.build()
            self.source.put(resource, raw, version=int(raw["metadata"]["resourceVersion"]))
