"""A local, always current copy of one collection, reduced to the views that the process needs.

Raw objects are never kept: a garbage collection over 100,000 of them as dictionaries would stop the process for
seconds, over compact views for milliseconds.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from random import Random
from typing import Any, Generic, TypeVar

from core.objects.kinds import Kind
from core.objects.kinds import V as K
from core.sharded import Sharded
from kube.changes import Bookmark, CaughtUp, Event, ListBegins, Listed, Removed, Upsert
from kube.metrics import DEFAULT, Metrics
from kube.reflector import ListWatch, Reflector, Timing
from kube.resources import ALL, Resource, Scope
from kube.resources import of as resource_of
from kube.turns import Turns
from kube.unseen import Unseen
from kube.versions import BestVersion

_LOG = logging.getLogger(__name__)

V = TypeVar("V")

Handler = Callable[[V | None, V | None], None]

_CATCH_UP_S = 15.0

GARBAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What a projection may raise on an object with content that it does not expect."""


class Informer(Generic[V]):
    """Holds a view of every object of a resource that is of interest, and tells handlers of each change.

    `project` makes the view of a raw object; None means that the object is not of interest, and an object that stops
    being so counts as deleted. A view that cannot be made (GARBAGE) is counted, logged once, and absent.
    Views are known by the key of their object, `namespace/name` or `name`; they must be immutable and comparable.
    """

    def __init__(
        self,
        client: ListWatch,
        resource: Resource,
        project: Callable[[dict[str, Any]], V | None],
        *,
        scope: Scope = ALL,
        optional: bool = False,
        dispensable: bool = False,
        timing: Timing | None = None,
        turns: Turns | None = None,
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
    ) -> None:
        self._reflector = Reflector(
            client,
            resource,
            scope=scope,
            optional=optional,
            dispensable=dispensable,
            timing=timing,
            turns=turns,
            rng=rng,
            metrics=metrics,
        )
        self._resource = resource
        self._project = project
        self._views = Sharded[V]()
        self._unreadable: set[str] = set()
        self._handlers: list[Handler[V]] = []
        self._corrected = Unseen(lambda key: self._put(key, None))
        """The keys of those that are here by `correct` alone."""
        self._unseen = [self._corrected]
        self._synced = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._refreshed: list[asyncio.Event] = []
        self._clock = time.monotonic
        """That of the event loop in which it runs."""
        self._contact: float | None = None
        self._list_began: float | None = None
        """While a list has not come to its end."""
        label = str(resource)
        self._size = metrics.informer_objects.labels(label)
        self._projection_failures = metrics.projection_failures.labels(label)
        self._staleness = metrics.informer_staleness.labels(label)

    @property
    def resource(self) -> Resource:
        """What is being followed."""
        return self._resource

    @property
    def synced(self) -> bool:
        """Whether the collection has been listed completely once. It stays true while the API server is away."""
        return self._synced.is_set()

    @property
    def refreshing(self) -> bool:
        """Whether what `refresh` or `catch_up` asked for has not been taken in yet, whoever still waits for it."""
        return bool(self._refreshed)

    async def wait_synced(self) -> None:
        """Returns when `synced` is true; `run` has to be running."""
        await self._synced.wait()

    def staleness_s(self) -> float | None:
        """Seconds since the API server last said anything about this resource, None before all of it was first listed.

        While the server answers that is no more than some fifteen, however quiet it is. A list is a word as of when it began, and
        none before its end: until then what came with its later pages is missing.
        """
        return None if self._contact is None else self._clock() - self._contact

    def get(self, key: str) -> V | None:
        """The view of the object of that key."""
        return self._views.get(key)

    def values(self) -> Iterable[V]:
        """All views, live: not to be iterated across an await."""
        return self._views.values()

    @property
    def views(self) -> Mapping[str, V]:
        """All views by their keys, live as well."""
        return self._views

    def __len__(self) -> int:
        return len(self._views)

    def subscribe(self, handler: Handler[V]) -> None:
        """Calls `handler(old, new)` for every view there is, as an addition, and from then on for every change.

        (None, new) is an addition, (old, None) a removal; equal views are no change. Handlers are called one after
        the other in the order of events, after the store is up to date; they must not block, and an
        exception of theirs ends `run`.
        """
        self._handlers.append(handler)
        for view in self._views.values():
            handler(None, view)

    def correct(self, object_key: str, view: V | None, version: str = "") -> None:
        """Takes in an object that was read just now in this version, None for one that does not exist, until the watch says more.

        One that the watch never shows goes when it has come past the read, see Unseen.
        Not for what was read before the present view came: an older state would stand for the newer one.
        """
        if view is not None and not self._reflector.shows(object_key):
            self._corrected.put(object_key, version)
        self._put(object_key, view)

    def track(self, unseen: Unseen) -> None:
        """Tells from now on how far lists and watch have come; what they show of objects is for handlers to tell."""
        self._unseen.append(unseen)

    async def run(self) -> None:
        """Follows the collection until cancelled."""
        self._clock = asyncio.get_running_loop().time
        began = self._clock()
        # Who has heard nothing yet is as stale as the time is long since he has asked.
        self._staleness.set_function(
            lambda: self._clock() - (began if self._contact is None else self._contact)
        )
        self._size.set_function(lambda: len(self._views))
        while True:
            self._following = asyncio.create_task(self._follow(), name=f"follow {self._resource}")
            try:
                await self._following
            except asyncio.CancelledError:
                # `refresh` cancels that task alone, and the next round begins with a list.
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise

    async def refresh(self) -> None:
        """Lists everything anew, and returns when that has been taken in: nothing written before the call is missing.

        Handlers hear only of what differs. `run` has to be running.
        """
        await self._begin_anew(None).wait()

    async def catch_up(self) -> None:
        """Returns when nothing written before the call is missing, as `refresh` does, and asks for no list where it need not.

        What is stored last is asked for by its version, and the watch has to show that it has come so far. A watch that does
        not within fifteen seconds is not waited for: then everything is listed anew.
        """
        version: int | None = None
        try:
            version = await self._reflector.newest()
        finally:
            # Also where nobody waits any longer: see `refreshing`.
            reached = self._begin_anew(version)
        if version is not None:
            try:
                async with asyncio.timeout(_CATCH_UP_S):
                    await reached.wait()
            except TimeoutError:
                await self.refresh()
        await reached.wait()

    def _begin_anew(self, version: int | None) -> asyncio.Event:
        """Has the next watch come to this version, or for None everything be listed anew; the event is set by either."""
        reached = asyncio.Event()
        self._refreshed.append(reached)
        if version is None:
            self._reflector.relist()
        else:
            self._reflector.catch_up(version)
        if self._following is not None:
            self._following.cancel()
        return reached

    async def _follow(self) -> None:
        async with aclosing(self._reflector.run()) as events:
            async for event in events:
                self._hear(event)
                self._take(event)

    def _hear(self, event: Event) -> None:
        """Takes note of a word of the API server. That a list begins is none: it may refuse every one for hours."""
        if isinstance(event, ListBegins):
            self._list_began = self._clock()
        elif isinstance(event, Listed):
            self._contact, self._list_began = self._list_began, None
        elif self._list_began is None:
            self._contact = self._clock()

    def _take(self, event: Event) -> None:
        match event:
            case Upsert(key, raw):
                self._corrected.drop(key)
                self._put(key, self._view_of(key, raw))
            case Removed(key):
                self._unreadable.discard(key)
                self._put(key, None)
            case ListBegins():
                for unseen in self._unseen:
                    unseen.list_begins()
            case Listed(version):
                for unseen in self._unseen:
                    unseen.listed(version)
                self._on_listed()
            case Bookmark(version):
                for unseen in self._unseen:
                    unseen.come_to(version)
            case CaughtUp():
                self._on_current()

    def _on_listed(self) -> None:
        if not self._synced.is_set():
            _LOG.info("listed", extra={"resource": str(self._resource), "objects": len(self._views)})
        self._synced.set()
        self._on_current()

    def _on_current(self) -> None:
        """Nothing is missing that was written before the present attempt began."""
        for reached in self._refreshed:
            reached.set()
        self._refreshed.clear()

    def _view_of(self, key: str, raw: dict[str, Any]) -> V | None:
        try:
            view = self._project(raw)
        except GARBAGE as error:
            self._projection_failures.inc()
            if key not in self._unreadable:
                self._unreadable.add(key)
                extra = {"resource": str(self._resource), "object": key, "error": type(error).__name__}
                _LOG.warning("object cannot be read, treated as absent", extra=extra)
            return None
        self._unreadable.discard(key)
        return view

    def _put(self, object_key: str, new: V | None) -> None:
        """Makes `new` the view of the object, and tells the handlers unless it equals the one before."""
        old = self._views.get(object_key)
        if new is not None:
            # Also in the place of an equal one: what is left out of comparisons, its version as a rule, is the latest all the same.
            self._views.add(object_key, new)
        elif old is not None:
            del self._views[object_key]
        if old != new:
            for handler in self._handlers:
                handler(old, new)


def informer_of(
    client: ListWatch,
    kind: Kind[K],
    *,
    project: Callable[[dict[str, Any]], K] | None = None,
    on_found: Callable[[bool], None] | None = None,
    turns: Turns | None = None,
    metrics: Metrics = DEFAULT,
) -> Informer[K]:
    """An informer of a kind that decisions rest on, in the best version that there is.

    `on_found` is told whether one is served, see BestVersion; `project` stands for the projection of the table.
    Informers with the same `turns` share one slice in each round of the loop.
    """
    if on_found is not None or len(kind.versions) > 1:
        client = BestVersion(client, kind.versions, on_found or (lambda _served: None))
    return Informer(
        client,
        resource_of(kind),
        project or kind.project,
        optional=kind.optional,
        dispensable=kind.dispensable,
        turns=turns,
        metrics=metrics,
    )
