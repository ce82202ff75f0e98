"""A state file in the part of the API server: the caches of both processes follow it as they follow a cluster."""

import asyncio
from collections.abc import AsyncGenerator

from cli.kinds import ObjectKind
from cli.state import State
from kube.client import Json
from kube.listing import Page, WatchEvent, Watching
from kube.resources import ALL, Resource, Scope

_VERSION = "1"


class StateCluster:
    """The two calls that reflectors make (kube.reflector.ListWatch), over objects that never change."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page]:
        """All objects of the resource in pages. Selectors are not understood; no cache of ours uses them."""
        if scope != ALL:
            raise ValueError(f"{resource}: a state file is listed as a whole")
        found = self._state.complete.get(ObjectKind(resource.group, resource.kind), ())
        for start in range(0, max(len(found), 1), limit):
            yield Page([_json(raw) for raw in found[start : start + limit]], _VERSION)
            # A large file must not keep the probes waiting.
            await asyncio.sleep(0)

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        """Bookmarks as long as the server would send some; nothing ever changes."""
        del resource
        pause = asked.inactivity_s / 3
        for _ in range(max(1, int(asked.timeout_s / pause))):
            await asyncio.sleep(pause)
            yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": asked.resource_version}})


def _json(raw: object) -> Json:
    assert isinstance(raw, dict)
    return raw
