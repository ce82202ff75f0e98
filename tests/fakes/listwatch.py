"""A scripted source of pages and watch events in memory, for tests in virtual time (real sockets take real time)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Any

from kube.listing import Page, WatchEvent, Watching
from kube.resources import ALL, Resource, Scope

Json = dict[str, Any]
Words = list[str]
Numbers = list[float]
Step = WatchEvent | Exception | float
"""An event, an error to raise, or seconds to wait."""


def raw(name: str, version: int, uid: str = "", **content: Any) -> Json:
    """An object in namespace `a`; its uid is its name unless given."""
    head = {"name": name, "namespace": "a", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": head, **content}


def added(name: str, version: int, uid: str = "", **content: Any) -> WatchEvent:
    return WatchEvent("ADDED", raw(name, version, uid, **content))


def modified(name: str, version: int, uid: str = "", **content: Any) -> WatchEvent:
    return WatchEvent("MODIFIED", raw(name, version, uid, **content))


def deleted(name: str, version: int, uid: str = "") -> WatchEvent:
    return WatchEvent("DELETED", raw(name, version, uid))


def bookmark(version: int) -> WatchEvent:
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


class ScriptedSource:
    """Each list and each watch plays the next script; when there is none, a watch is silent until it is given up.

    A list's script holds objects, each a page of its own, errors to raise, or seconds to wait; its version counts up from 10 in tens.
    """

    def __init__(
        self,
        *,
        lists: Sequence[Sequence[Json | Exception | float]] = (),
        watches: Sequence[Sequence[Step]] = (),
    ) -> None:
        self.lists = list(lists)
        self.watches = list(watches)
        self.calls: list[tuple[str, float, str]] = []
        self.timeouts: list[float] = []
        self.answer_limits: list[float] = []
        self.exhausted = asyncio.Event()

    async def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page]:
        count = sum(kind == "list" for kind, _, _ in self.calls) + 1
        self._note("list", "")
        script = self.lists.pop(0) if self.lists else ()
        for item in script:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, float):
                await asyncio.sleep(item)
                continue
            yield Page([item], str(10 * count))
        yield Page([], str(10 * count))

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        self._note("watch", asked.resource_version)
        self.timeouts.append(asked.timeout_s)
        self.answer_limits.append(asked.answer_s)
        if not self.watches:
            self.exhausted.set()
            await asyncio.sleep(asked.inactivity_s)
            return
        for step in self.watches.pop(0):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, WatchEvent):
                yield step
            else:
                await asyncio.sleep(step)

    def _note(self, kind: str, version: str) -> None:
        self.calls.append((kind, asyncio.get_running_loop().time(), version))

    @property
    def order(self) -> Words:
        """The calls as words: `list`, `watch@<version>`."""
        return [f"watch@{version}" if kind == "watch" else kind for kind, _, version in self.calls]

    @property
    def pauses(self) -> Numbers:
        """Seconds between the calls."""
        times = [time for _, time, _ in self.calls]
        return [later - earlier for earlier, later in pairwise(times)]
