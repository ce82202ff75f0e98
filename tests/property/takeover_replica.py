"""Two controllers over what is stored: one that leads and is killed, one that stands by, hears late, and takes over."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from controller.announcements import Announcements
from controller.auditing import Auditor
from controller.binding import BindingHook
from controller.caches import Caches
from controller.decision_series import DecisionSeries
from controller.device_series import DeviceSeries
from controller.discovery import NodeWatch
from controller.extender_votes import VoteNotes
from controller.leading import Leader
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.node_series import NodeSeries
from controller.nominations import Nominations
from controller.overruns import OverrunWatch
from controller.process import _exists, _forget_what_goes, _rollouts
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from controller.usage_series import UsageSeries
from core.admission.request import AdmissionRequest, Decision
from kube import runtime
from kube.events import EventRecorder
from kube.lease import Term
from kube.metrics import Metrics as ApiMetrics
from tests.builders.raw import Builder
from tests.property.takeover_world import INFORMERS, SETTINGS, USAGE, Api, Stored
from tests.unit.controller.cluster import NoWrites, caches, show

Runnable = Callable[[], Awaitable[None]]


class Replica:
    """Everything of a controller that follows and decides; it hears of what is stored when it is told to."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.api = stored, Api(stored)
        self.unheard: deque[tuple[str, str, Builder | None]] = deque()
        self.caches = self._follow()
        self._registry = CollectorRegistry()
        metrics, api_metrics = Metrics(self._registry), ApiMetrics(CollectorRegistry())
        recorder = EventRecorder(
            self.api, "cardquota", "replica", now=_moment, rng=stored.rng, metrics=api_metrics
        )
        exists = partial(_exists, self.caches)
        self._announcements = Announcements(recorder, _rollouts(self.caches), recorder.recall, exists)
        notes = VoteNotes(recorder, recorder.recall, exists)
        _forget_what_goes(self.caches, recorder, self._announcements, notes, metrics.by_queue)
        parts = (self.api, self.caches, self._announcements, metrics)
        self._overruns = OverrunWatch(self.caches, self._announcements, _now)
        nominations = Nominations(self.api, self.caches)
        reservations = ReservationWatch(*parts, SETTINGS, _now)
        stranded = StrandedPods(self.caches, self._announcements, nominations.move)
        series = QueueSeries(self.caches.ledger, reservations.late, reservations.unfinished)
        self._follower = UsageFollower(self.caches, _now)
        usage = UsageKeeper(self.api, self.caches, self._follower, metrics, USAGE.partition("/")[0])
        self.hook = BindingHook(self.api, self.caches, SETTINGS, metrics, on_refusal=stranded.refused)
        self.leader = Leader(
            self.caches,
            Lifter(*parts),
            nominations,
            Publisher(*parts),
            Repairer(self.api, self.caches, recorder, metrics, SETTINGS),
            reservations,
            stranded,
            QueueDefinitionKeeper(NoWrites(), self.caches, recorder, metrics, SETTINGS),
            QueueRecords(self.api, self.caches),
            self.hook,
            series,
            Auditor(self.caches, metrics),
            NodeWatch(self.caches, self._announcements),
            usage,
        )
        for shown in (
            series,
            DecisionSeries(metrics.by_queue),
            DeviceSeries(self.caches.ledger.devices, lambda: series.leading),
            UsageSeries(self.caches.ledger, lambda: series.leading),
            NodeSeries(self.caches.ledger, self.caches.guests, lambda: series.leading),
            usage.counters(lambda: series.leading),
        ):
            self._registry.register(shown)
        self._runnables: tuple[Runnable, ...] = (recorder.run, self._overruns.run, notes.run)
        for plural, key, built in stored.followed():
            self._show(plural, key, built)
        stored.followers.append(self)

    def _follow(self) -> Caches:
        """Its view of the cluster."""
        result = caches(settings=SETTINGS)
        result.catch_up = self._catch_up  # type: ignore[method-assign]  # nothing here is listed
        return result

    def happened(self, plural: str, key: str, built: Builder | None) -> None:
        """Is told of one change, when it happens."""
        self.unheard.append((plural, key, built))

    def hear(self, most: int) -> None:
        """Takes in so many of the changes that it has not heard of, in their order."""
        while most > 0 and self.unheard:
            self._show(*self.unheard.popleft())
            most -= 1

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """What runs on every replica runs to the end of the block; what has ended by itself by then is raised."""
        async with _beside(*self._followed_by()):
            yield

    def _followed_by(self) -> Sequence[Runnable]:
        # Nothing here is listed, so nobody can wait until it is.
        self._follower.courses.settled = True
        self._follower.settled.set()
        return self._runnables

    async def lead(self, epoch: int) -> None:
        """Leads until cancelled."""
        self._overruns.tell()
        term = Term(epoch, asyncio.get_running_loop().time, float("inf"))
        await runtime.run_both(self.leader.lead(term), self._announcements.run())

    async def review(self, request: AdmissionRequest) -> Decision:
        """The answer of this replica to a bind."""
        return await self.hook.review(request)

    def scraped(self) -> bytes:
        """What it shows a scraper."""
        return generate_latest(self._registry)

    def kill(self) -> None:
        """From now on it neither hears nor says anything."""
        self.api.dead = True
        self.stored.followers.remove(self)

    async def _catch_up(self) -> None:
        await asyncio.sleep(0.1)
        self.hear(len(self.unheard))

    def _show(self, plural: str, key: str, built: Builder | None) -> None:
        informer = getattr(self.caches, INFORMERS[plural])
        old = informer.get(key)
        view: Any = built.view() if built is not None else None  # type: ignore[attr-defined]  # all builders here have one
        if old is not None and view is not None and _uid(old) != _uid(view):
            show(informer, key, None)
        show(informer, key, view)


def fresh(stored: Stored) -> Caches:
    """The caches of a process that has listed everything, and knows nothing else."""
    replica = Replica(stored)
    stored.followers.remove(replica)
    return replica.caches


@asynccontextmanager
async def _beside(*runnables: Runnable) -> AsyncGenerator[None]:
    tasks = [asyncio.ensure_future(runnable()) for runnable in runnables]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()


def _uid(view: Any) -> str:
    """Empty where none is kept: nothing depends on whether a namespace is still the same."""
    return getattr(view, "uid", "")


def _moment() -> datetime:
    return datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)


def _now() -> int:
    return round(asyncio.get_running_loop().time() * 1e6)
