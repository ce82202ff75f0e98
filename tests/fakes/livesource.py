"""A cluster in memory that lists, watches and reads like kube.client.Client, in virtual time; its watches can die."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from kube import errors
from kube.listing import Page, WatchEvent, Watching
from kube.resources import ALL, Resource, Scope

Json = dict[str, Any]


BOOKMARK_S = 2.0
"""So long before its end a watch gets a bookmark."""

FIRST_VERSION = 10
"""That of a cluster in which nothing was stored yet: no change may be said to be older."""


class LiveSource:
    """Objects by resource and key. What is stored reaches the watches that live, in the order of the writes."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Json]] = {}
        self._history: list[tuple[str, WatchEvent]] = []
        self._version = FIRST_VERSION
        self._watches: list[asyncio.Queue[None]] = []
        self.silent = False
        """Whether nobody answers any more: neither lists nor watches nor reads."""
        self.behind = False
        """Whether watches are shown nothing but how far they are: what they are made from has not come further."""
        self.mute = False
        """Whether they are not shown that either."""
        self.opened: list[tuple[str, float]] = []
        self.lists = 0
        """Those of more than one object."""

    def put(self, resource: Resource, raw: Json, version: int | None = None) -> None:
        """Stores an object and tells the watches; `version` is that of one which is stored elsewhere too."""
        self._advance(version)
        head = {**raw["metadata"], "resourceVersion": str(self._version)}
        known = self._objects.setdefault(str(resource), {})
        key = _key(head)
        kind = "MODIFIED" if key in known else "ADDED"
        known[key] = {**raw, "metadata": head}
        self._tell(resource, WatchEvent(kind, known[key]))

    def remove(self, resource: Resource, name: str, namespace: str = "", version: int | None = None) -> None:
        """Deletes an object and tells the watches."""
        self._advance(version)
        gone = self._objects[str(resource)].pop(f"{namespace}/{name}")
        head = {**gone["metadata"], "resourceVersion": str(self._version)}
        self._tell(resource, WatchEvent("DELETED", {**gone, "metadata": head}))

    def _advance(self, version: int | None) -> None:
        self._version = self._version + 1 if version is None else max(version, self._version)

    def come_on(self) -> None:
        """What the watches are made from has come as far as what is stored, if it was behind."""
        self.behind = False
        self._wake()

    def cut_off(self) -> None:
        """The watches that there are say nothing any more, as when a connection has died without a word."""
        self._watches.clear()

    def restore(self, version: int) -> None:
        """The database is an older one, without what has been stored since."""
        self._version = version
        self._history.clear()
        for known in self._objects.values():
            for key in [key for key, raw in known.items() if _version(raw) > version]:
                del known[key]

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        if self.silent:
            await asyncio.sleep(timeout_s)
            raise errors.ConnectionFailed("timed out")
        found = self._objects.get(str(resource), {}).get(f"{namespace or ''}/{name}")
        if found is None:
            raise errors.NotFound(404)
        return found

    async def list(
        self, resource: Resource, scope: Scope = ALL, *, limit: int = 500, **_: Any
    ) -> AsyncGenerator[Page]:
        await self._answered(60.0)
        assert scope == ALL
        self.lists += limit > 1
        found, version = list(self._objects.get(str(resource), {}).values()), str(self._version)
        for start in range(0, len(found), limit):
            yield Page(found[start : start + limit], version)
        if not found:
            yield Page([], version)

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        await self._answered(asked.answer_s)
        if int(asked.resource_version) > self._version:
            raise errors.ServerError(504, "Timeout", "Too large resource version")
        loop = asyncio.get_running_loop()
        self.opened.append((str(resource), loop.time()))
        yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": asked.resource_version}})
        ends, last, woken = loop.time() + asked.timeout_s, int(asked.resource_version), asyncio.Queue[None]()
        self._watches.append(woken)
        marks = ends - BOOKMARK_S
        while loop.time() < ends:
            for event in () if self.behind else self._since(resource, last):
                last = _version(event.object)
                yield event
            if marks <= loop.time() and (self.behind or not self._since(resource, last)):
                # Nothing has come while the last events were being taken in.
                marks = ends
                last = last if self.behind else self._version
                if not self.mute:
                    yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(last)}})
            heard = loop.time()
            try:
                async with asyncio.timeout(min(asked.inactivity_s, marks - heard)):
                    await woken.get()
            except TimeoutError:
                if woken not in self._watches:
                    # Nor does its end come through: that it is silent is all that can be noticed.
                    await asyncio.sleep(heard + asked.inactivity_s - loop.time())
                    return
                if loop.time() < marks:
                    return

    async def _answered(self, within_s: float) -> None:
        if self.silent:
            await asyncio.sleep(within_s)
            raise errors.ConnectionFailed("timed out")

    def _since(self, resource: Resource, version: int) -> Sequence[WatchEvent]:
        return tuple(
            event
            for kind, event in self._history
            if kind == str(resource) and _version(event.object) > version
        )

    def _tell(self, resource: Resource, event: WatchEvent) -> None:
        self._history.append((str(resource), event))
        self._wake()

    def _wake(self) -> None:
        for woken in self._watches:
            woken.put_nowait(None)


def _version(raw: Json) -> int:
    return int(raw["metadata"]["resourceVersion"])


def _key(head: Json) -> str:
    return f"{head.get('namespace', '')}/{head['name']}"
