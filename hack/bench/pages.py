"""A source of objects for informers: pages made on the fly, then watch events, with the parsing as over the wire."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

import orjson

from kube.listing import Page, WatchEvent, Watching
from kube.resources import ALL, Resource, Scope

PAGE = 500

Objects = Callable[[], Iterable[bytes]]
"""The objects of a collection, each as JSON."""


class Pages:
    """Lists and watches without a server: `listed` and `changed` by plural name; what is not named is empty.

    A watch ends its events by setting `quiet` and stays open.
    """

    def __init__(self, listed: Mapping[str, Objects], changed: Mapping[str, Objects] | None = None) -> None:
        self._listed = listed
        self._changed = changed or {}
        self.start = asyncio.Event()
        """Holds the watch events back until it is set."""
        self.quiet = asyncio.Event()

    async def list(
        self,
        resource: Resource,
        scope: Scope = ALL,  # noqa: ARG002 - the protocol's
        *,
        limit: int = PAGE,
    ) -> AsyncGenerator[Page]:
        """The listed objects of the resource in pages."""
        for page in in_pages(self._listed.get(resource.plural, tuple)(), limit):
            yield Page(orjson.loads(page)["items"], "1")
        yield Page([], "1")

    async def watch(
        self,
        resource: Resource,
        asked: Watching,  # noqa: ARG002
    ) -> AsyncGenerator[WatchEvent]:
        """The changed objects of the resource, each as a modification; then silence."""
        changes = self._changed.get(resource.plural)
        if changes is not None:
            await self.start.wait()
            for change in changes():
                yield WatchEvent("MODIFIED", orjson.loads(change))
            self.quiet.set()
        await asyncio.Event().wait()


def in_pages(objects: Iterable[bytes], size: int = PAGE) -> Iterable[bytes]:
    """The bodies of a paged list."""
    page: list[bytes] = []
    for each in objects:
        page.append(each)
        if len(page) == size:
            yield _body(page)
            page = []
    if page:
        yield _body(page)


def _body(items: Iterable[bytes]) -> bytes:
    return b'{"items":[' + b",".join(items) + b"]}"
