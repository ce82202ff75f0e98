"""Events (events.k8s.io/v1) about objects, written in the background and never in the way of the work.

Repeats of an event within some minutes are counted on the first one's `series` instead of filling the list that a
user reads, and no object gets more than a burst of them, however fast something flaps.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Literal, Protocol

from kube import errors
from kube.backoff import Backoff
from kube.client import Json, JsonPatch, PatchType
from kube.metrics import DEFAULT, Metrics
from kube.resources import EVENTS, Resource
from kube.times import micro_time

_LOG = logging.getLogger(__name__)

NOTE_LIMIT = 1024
"""Bytes of UTF-8 that the API server accepts as an event's note."""

_NAME_LIMIT = 200
_BURST = 25
_REFILL_S = 300.0
_SERIES_S = 600.0
_REMEMBERED = 4096
_ATTEMPTS = 3

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, resource: Resource, name: str, namespace: str = "", uid: str = "") -> "Reference":
        """The reference to an object of a known resource."""
        return cls(resource.api_version, resource.kind, name, namespace, uid)


class EventStore(Protocol):
    """The calls of kube.client.Client that a recorder makes."""

    async def create(self, resource: Resource, body: Json, namespace: str | None = None) -> Json:
        """See Client.create."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Json | JsonPatch,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
    ) -> Json:
        """See Client.patch."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What makes two events the same one."""

    regarding: Reference
    type: EventType
    reason: str
    note: str
    action: str


@dataclass(slots=True)
class _Series:
    """An event that was written: where, how often it happened, and when last."""

    name: str
    count: int
    last: float


class EventRecorder:
    """Takes events at any time and writes them while `run` runs.

    `controller` and `instance` say who reports: a qualified name and this process.
    """

    def __init__(
        self,
        client: EventStore,
        controller: str,
        instance: str,
        *,
        limit: int = 1000,
        clock: Callable[[], float] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance[:128]
        self._limit = limit
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._now = now
        self._rng = rng or Random()  # noqa: S311 - spreads attempts and makes names unique, protects nothing
        self._metrics = metrics
        self._pending: OrderedDict[_Key, int] = OrderedDict()
        self._wake = asyncio.Event()
        self._tokens: OrderedDict[Reference, tuple[float, float]] = OrderedDict()
        self._series: OrderedDict[_Key, _Series] = OrderedDict()

    def emit(self, regarding: Reference, event_type: EventType, reason: str, note: str, action: str) -> bool:
        """Queues an event; whether it will be written (drops are counted). Never blocks, never raises.

        `reason` and `action` are short CamelCase words; a note of more than NOTE_LIMIT bytes is cut.
        """
        key = _Key(regarding, event_type, reason, _cut(note), action)
        if not self._take_token(regarding):
            self._metrics.events_dropped.labels("rate").inc()
            return False
        if key not in self._pending and len(self._pending) >= self._limit:
            self._metrics.events_dropped.labels("full").inc()
            return False
        self._pending[key] = self._pending.get(key, 0) + 1
        self._metrics.events_queued.set(len(self._pending))
        self._wake.set()
        return True

    async def run(self) -> None:
        """Writes queued events one after the other until cancelled; what is queued then is lost."""
        while True:
            await self._wake.wait()
            while self._pending:
                key, count = self._pending.popitem(last=False)
                self._metrics.events_queued.set(len(self._pending))
                await self._write_or_drop(key, count)
            self._wake.clear()

    async def _write_or_drop(self, key: _Key, count: int) -> None:
        backoff = Backoff(self._rng)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._write(key, count)
            except (errors.ConnectionFailed, errors.ServerError, errors.Throttled) as error:
                if attempt == _ATTEMPTS:
                    self._dropped(key, error)
                    return
                await asyncio.sleep(backoff.next_delay())
            except errors.ApiError as error:
                self._dropped(key, error)
                return
            else:
                return

    def _dropped(self, key: _Key, error: errors.KubeError) -> None:
        # A namespace that is going away refuses new events: expected, and nobody is left to read them.
        self._metrics.events_dropped.labels("failed").inc()
        extra = {"reason": key.reason, "kind": key.regarding.kind, "error": str(error)}
        _LOG.warning("event not written", extra=extra)

    async def _write(self, key: _Key, count: int) -> None:
        series = self._series.get(key)
        if series is not None and self._clock() - series.last < _SERIES_S:
            try:
                await self._count_up(key, series, count)
            except errors.NotFound:
                del self._series[key]  # events live for an hour only
            else:
                return
        await self._create(key, count)

    async def _count_up(self, key: _Key, series: _Series, count: int) -> None:
        total = series.count + count
        body = {"series": {"count": total, "lastObservedTime": micro_time(self._now())}}
        namespace = _namespace(key)
        await self._client.patch(EVENTS, series.name, body, namespace, patch_type=PatchType.MERGE)
        series.count, series.last = total, self._clock()
        self._series.move_to_end(key)
        self._metrics.events_written.labels("series").inc()

    async def _create(self, key: _Key, count: int) -> None:
        # As client-go names them: the object's name, and something that no other event of it has.
        stem = key.regarding.name[:_NAME_LIMIT].rstrip(".-")
        name = f"{stem}.{self._rng.getrandbits(64):016x}"
        await self._client.create(EVENTS, self._body(key, name, count), _namespace(key))
        self._series[key] = _Series(name, count, self._clock())
        self._series.move_to_end(key)
        if len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)
        self._metrics.events_written.labels("create").inc()

    def _body(self, key: _Key, name: str, count: int) -> Json:
        now = micro_time(self._now())
        regarding = {
            "apiVersion": key.regarding.api_version,
            "kind": key.regarding.kind,
            "name": key.regarding.name,
            "namespace": key.regarding.namespace,
            "uid": key.regarding.uid,
        }
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": _namespace(key)},
            "eventTime": now,
            "type": key.type,
            "reason": key.reason,
            "action": key.action,
            "note": key.note,
            "regarding": {field: value for field, value in regarding.items() if value},
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
        if count > 1:
            body["series"] = {"count": count, "lastObservedTime": now}
        return body

    def _take_token(self, regarding: Reference) -> bool:
        """Whether the object may have one more event now: a burst of 25, and one more each five minutes."""
        now = self._clock()
        tokens, since = self._tokens.pop(regarding, (float(_BURST), now))
        tokens = min(float(_BURST), tokens + (now - since) / _REFILL_S)
        granted = tokens >= 1.0
        self._tokens[regarding] = (tokens - 1.0 if granted else tokens, now)
        if len(self._tokens) > _REMEMBERED:
            self._tokens.popitem(last=False)
        return granted


def _namespace(key: _Key) -> str:
    """Events about cluster-scoped objects live in `default`: the API server accepts them nowhere else."""
    return key.regarding.namespace or "default"


def _cut(note: str) -> str:
    raw = note.encode("utf-8", errors="replace")
    if len(raw) <= NOTE_LIMIT:
        return raw.decode("utf-8")
    return raw[: NOTE_LIMIT - 3].decode("utf-8", errors="ignore") + "..."
