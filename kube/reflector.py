"""The list-and-watch protocol of Kubernetes for one resource, as a stream of small events.

Two layers, so that each can be tested by itself: `Reflector.attempt` is one list (where needed) and one watch, and
raises whatever ends it; `Reflector.run` is the thin endless loop around it that decides how long to wait and whether
the next attempt has to list again.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Protocol

from core.sharded import Sharded
from kube import errors
from kube.backoff import Backoff
from kube.changes import Bookmark, CaughtUp, Event, ListBegins, Listed, Removed, Upsert
from kube.client import Json
from kube.listing import Page, WatchEvent, Watching
from kube.metrics import DEFAULT, Metrics
from kube.resources import ALL, Resource, Scope
from kube.turns import Turns

_LOG = logging.getLogger(__name__)

_AT_ONCE = 50
"""So many events are handled before others come to their turn, or fewer where they take longer."""
_SOUGHT_AT_ONCE = 5000
"""So many known objects are looked for in a list before others come to their turn."""
_ANSWER_CAP_S = 30.0
_STABLE_S = 10.0
_RETRY_AFTER_CAP_S = 120.0
_SERVER_ERRORS_UNTIL_LIST = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """How long the server is asked to keep a watch open, how long silence is borne, and how failures are paced.

    The open time is drawn between its bounds, so that the watches of many clients do not end together. A connection that
    died without a word is noticed within 15 s: after `inactivity_s` of silence the watch is taken up again, and has to be
    answered within `answer_s`, or longer after each failure, for a server may be slow.
    While nothing changes a watch lasts for `quiet_s`: the server sends a bookmark two seconds before it ends one, else
    only each minute, so the version never grows too old to be taken up from.
    A page of 125 pods is parsed in about five milliseconds, on a busy machine in twenty, during which nothing else runs.
    """

    watch_min_s: float = 290.0
    watch_max_s: float = 580.0
    quiet_s: float = 11.0
    catch_up_s: float = 4.0
    """How long a watch lasts that is to show soon how far it is: until two seconds before its end, with the bookmark."""
    inactivity_s: float = 11.0
    answer_s: float = 3.5
    backoff_base_s: float = 0.8
    backoff_cap_s: float = 30.0
    page_size: int = 125


class ListWatch(Protocol):
    """The two calls of kube.client.Client that a reflector makes."""

    def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page]:
        """See Client.list."""

    def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        """See Client.watch."""


def object_key(raw: Json) -> str:
    """The key of an object: `namespace/name`, or `name` for a cluster-scoped one."""
    head = raw["metadata"]
    namespace = head.get("namespace")
    return f"{namespace}/{head['name']}" if namespace else str(head["name"])


class Reflector:
    """Follows one collection. It keeps of each object no more than its key and uid.

    `optional` says that the resource may be missing in this cluster (its CRD is not installed): then it counts as an
    empty collection, and is looked for again every now and then. `dispensable` says the same of a resource that may not be
    read, as long as it never was: what was listed once is kept when the right to it is taken away.
    """

    def __init__(
        self,
        source: ListWatch,
        resource: Resource,
        *,
        scope: Scope = ALL,
        optional: bool = False,
        dispensable: bool = False,
        timing: Timing | None = None,
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
        turns: Turns | None = None,
    ) -> None:
        self._source = source
        self._turns = turns or Turns()
        self._resource = resource
        self._scope = scope
        self._optional = optional
        self._dispensable = dispensable
        """Whether it may be forbidden: until the first complete list."""
        self._timing = timing or Timing()
        self._rng = rng or Random()  # noqa: S311 - spreads waiting times, protects nothing
        self._metrics = metrics
        self._backoff = Backoff(
            self._rng, base_s=self._timing.backoff_base_s, cap_s=self._timing.backoff_cap_s
        )
        self._uids = Sharded[str]()
        self._resource_version: str | None = None
        self._watching_since: float | None = None
        self._answered = False
        """Whether the last attempt got as far as a watch that has said anything."""
        self._answer_s = self._timing.answer_s
        """How long the next watch may take to say anything."""
        self._quiet = False
        """Whether the last watch went by without a change."""
        self._awaited: int | None = None
        """The version that the watch is to reach, see `catch_up`."""
        self._server_errors = 0
        self._last_failure = ""

    def shows(self, key: str) -> bool:
        """Whether the object of this key has been said to exist, and not to be gone since."""
        return key in self._uids

    def relist(self) -> None:
        """Makes the next attempt begin with a list. Somebody waits for it: if it fails, former failures make nothing longer."""
        self._resource_version = self._awaited = None
        self._backoff.reset()

    async def newest(self) -> int | None:
        """The version of the collection as it is stored now; None where to list it anew is as good, or it cannot be told.

        That is so of whatever one page holds, before the first list, and when the answer does not come in time.
        """
        if self._resource_version is None or len(self._uids) <= self._timing.page_size:
            return None
        try:
            async with asyncio.timeout(self._timing.catch_up_s):
                # Without a version that it is asked for, the server answers with what its database has.
                async with aclosing(self._source.list(self._resource, self._scope, limit=1)) as pages:
                    async for page in pages:
                        return int(page.resource_version) if page.resource_version.isdecimal() else None
        except (errors.KubeError, TimeoutError):
            return None
        return None

    def catch_up(self, version: int) -> None:
        """Makes the watches from the next attempt on short, until one of them has come to this version, and to those before.

        Somebody waits for it, as for `relist`.
        """
        self._awaited = max(version, self._awaited or 0)
        self._backoff.reset()

    async def run(self) -> AsyncGenerator[Event]:
        """The events of all attempts, for ever. Close the generator to stop.

        Gives way to other tasks every few milliseconds, however large a burst is or an event in it: those who share their
        turns have one slice in each round of the loop.
        """
        count = 0
        while True:
            failure: errors.KubeError | None = None
            try:
                async with aclosing(self.attempt()) as events:
                    async for event in events:
                        yield event
                        count += 1
                        if self._turns.over() or count == _AT_ONCE:
                            await asyncio.sleep(0)
                            self._turns.begin()
                            count = 0
            except errors.KubeError as error:
                failure = error
            delay_s = self._pause_after(failure)
            if delay_s:
                await asyncio.sleep(delay_s)

    async def attempt(self) -> AsyncGenerator[Event]:
        """One list, unless the last watch can be taken up again, and one watch until the server ends it.

        Raises the KubeError that ended either. The list begins with ListBegins, and ends with Removed for everything known
        before that it did not hold, and Listed.
        """
        self._watching_since, self._answered = None, False
        if self._resource_version is None:
            async with aclosing(self._list()) as events:
                async for event in events:
                    yield event
        self._watching_since = asyncio.get_running_loop().time()
        async with aclosing(self._watch()) as events:
            async for event in events:
                yield event

    async def _list(self) -> AsyncGenerator[Event]:
        seen: set[str] = set()
        version = ""
        yield ListBegins()
        pages = self._source.list(self._resource, self._scope, limit=self._timing.page_size)
        missing: errors.NotFound | errors.Forbidden | None = None
        try:
            async with aclosing(pages):
                async for page in pages:
                    version = version or page.resource_version
                    # Each is let go with its event: to free a page of large ones at once would take long.
                    page.items.reverse()
                    while page.items:
                        raw = page.items.pop()
                        seen.add(object_key(raw))
                        for event in self._upsert(raw):
                            yield event
        except errors.NotFound as error:
            if not self._optional:
                raise
            missing = error
        except errors.Forbidden as error:
            if not self._dispensable:
                raise
            missing = error
        for count, key in enumerate(tuple(self._uids), 1):
            if key not in seen:
                del self._uids[key]
                yield Removed(key)
            if count % _SOUGHT_AT_ONCE == 0:
                await asyncio.sleep(0)
        yield Listed(version)
        if missing is not None:
            raise missing
        self._resource_version, self._dispensable = version, False
        self._metrics.lists.labels(str(self._resource)).inc()

    async def _watch(self) -> AsyncGenerator[Event]:
        self._metrics.watches.labels(str(self._resource)).inc()
        timing, quiet, self._quiet = self._timing, self._quiet, True
        lasts_s = timing.quiet_s if quiet else self._rng.uniform(timing.watch_min_s, timing.watch_max_s)
        answer_s, self._answer_s = self._answer_s, min(_ANSWER_CAP_S, 2 * self._answer_s)
        asked = Watching(
            resource_version=self._resource_version or "",
            scope=self._scope,
            timeout_s=lasts_s if self._awaited is None else timing.catch_up_s,
            inactivity_s=timing.inactivity_s,
            answer_s=answer_s,
        )
        stream = self._source.watch(self._resource, asked)
        said = False
        async with aclosing(stream):
            async for event in stream:
                self._answered, self._answer_s = True, timing.answer_s
                self._quiet = self._quiet and event.type == "BOOKMARK"
                version = event.object["metadata"]["resourceVersion"]
                if version != self._resource_version:
                    self._recovered()
                for change in self._changes(event):
                    yield change
                self._resource_version = version
                # The first event is none of the server's own, see Client.watch.
                if said and self._has_come_to(version):
                    self._awaited = None
                    yield CaughtUp()
                said = True

    def _has_come_to(self, version: str) -> bool:
        """Whether a version is not before the one that is awaited: they are numbers that grow, see controller.readings."""
        return self._awaited is not None and version.isdecimal() and int(version) >= self._awaited

    def _changes(self, event: WatchEvent) -> Iterator[Event]:
        if event.type == "BOOKMARK":
            yield Bookmark(event.object["metadata"]["resourceVersion"])
        elif event.type == "DELETED":
            key = object_key(event.object)
            if self._uids.pop(key, None) is not None:
                yield Removed(key)
        else:
            yield from self._upsert(event.object)

    def _upsert(self, raw: Json) -> Iterator[Event]:
        # An object deleted and made again while nobody watched shows only by its uid.
        key = object_key(raw)
        uid = raw["metadata"]["uid"]
        known = self._uids.get(key)
        if known is not None and known != uid:
            yield Removed(key)
        self._uids.add(key, uid)
        yield Upsert(key, raw)

    def _pause_after(self, failure: errors.KubeError | None) -> float:
        """Seconds until the next attempt; decides as well whether that one has to list."""
        since = self._watching_since if self._answered or failure is None else None
        watched_s = 0.0 if since is None else asyncio.get_running_loop().time() - since
        if watched_s >= _STABLE_S:
            self._backoff.reset()
        if failure is None:
            self._recovered()
            # A server that closes every watch at once would otherwise be asked without a pause.
            return 0.0 if watched_s >= 1.0 else self._backoff.next_delay()
        if self._must_list(failure):
            self._resource_version = None
        delay_s = self._backoff.next_delay()
        if isinstance(failure, errors.ApiError) and failure.retry_after is not None:
            delay_s = max(delay_s, min(failure.retry_after, _RETRY_AFTER_CAP_S))
        self._report(failure, delay_s)
        return delay_s

    def _must_list(self, failure: errors.KubeError) -> bool:
        """Whether a watch from the last known version would be useless.

        A lost connection says nothing about the version, so the watch goes on where it was. A server that keeps
        failing may refuse the version itself: after a restore of its database it answers 504 to a version from the
        future.
        """
        if isinstance(failure, errors.ConnectionFailed | errors.Throttled):
            return False
        if isinstance(failure, errors.ServerError):
            self._server_errors += 1
            return self._server_errors >= _SERVER_ERRORS_UNTIL_LIST
        return True

    def _recovered(self) -> None:
        self._server_errors = 0
        if self._last_failure:
            self._last_failure = ""
            _LOG.info("watching again", extra={"resource": str(self._resource)})

    def _report(self, failure: errors.KubeError, delay_s: float) -> None:
        """Counts every failure; logs one of a kind, not each repetition while it lasts."""
        name = type(failure).__name__
        self._metrics.watch_failures.labels(str(self._resource), name).inc()
        expected = isinstance(failure, errors.Gone) or (
            self._optional and isinstance(failure, errors.NotFound)
        )
        level = logging.DEBUG if expected or name == self._last_failure else logging.WARNING
        if not expected:
            self._last_failure = name
        extra = {"resource": str(self._resource), "error": str(failure), "retry_s": round(delay_s, 1)}
        _LOG.log(level, "list or watch failed", extra=extra)
