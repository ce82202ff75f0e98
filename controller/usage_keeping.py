"""The leader writes down what was used over time, in one ConfigMap: the only thing that cannot be derived from the cluster.

Nothing is decided by it. While it cannot be read or written, it is summed up in memory.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from controller.caches import Caches
from controller.metrics import Metrics
from controller.usage_counters import UsageCounters
from controller.usage_following import UsageFollower
from core.objects import raw as read
from core.page.hours import Summed
from core.usage.checkpoint import Checkpoint, CheckpointError, Scribe, UnknownVersionError, decoding
from kube import errors
from kube.calls import Reader
from kube.client import Json
from kube.lease import Term
from kube.resources import CONFIG_MAPS, Resource

_LOG = logging.getLogger(__name__)

NAME: Final = "cardquota-usage"

_PACE_S: Final = 10.0
"""The shortest time between two writes ..."""

_BYTES_PER_S: Final = 10_000.0
"""... and so much is written on average at the most: once in a hundred seconds where it is as large as it gets."""

_IDLE_S: Final = 60.0
"""How often it is written while no pod begins or ends and only time passes."""

_FAILED_S: Final = 30.0
_TIMEOUT_S: Final = 8.0

_STALE_S: Final = 120.0
"""What was not heard of for so long may have changed: nothing is written down as complete. See core.usage.courses.LATE_S."""

_AHEAD_S: Final = 86_400
"""A clock that is wrong by so much is told of: by no more, days are told apart as they were."""


class Keeper(Reader, Protocol):
    """The get and replace calls of kube.client.Client."""

    async def replace(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.replace."""


class UsageKeeper:
    """Sums up while it leads.

    Each write names the version that the sums rest on. Where somebody else has written since (a former leader whose write hung,
    or this one, whose answer was lost), what is there is taken, and all that was seen since is counted anew on top of it.
    """

    def __init__(
        self, client: Keeper, caches: Caches, follower: UsageFollower, metrics: Metrics, namespace: str
    ) -> None:
        self._client = client
        self._caches = caches
        self.follower = follower
        self._metrics = metrics
        self._namespace = namespace
        self._stored: Json | None = None
        self._scribe = Scribe()
        self._size = 0
        self._told = ""
        self.summing = False
        """Whether the sums are complete: for whoever shows them."""

    def counters(self, leading: Callable[[], bool]) -> UsageCounters:
        """What a scraper is shown of the sums, as long as `leading` says so."""
        follower = self.follower
        return UsageCounters(follower.courses, follower.now, leading, lambda: self.summing)

    def summed(self) -> Summed | None:
        """The sums, as of the last time that they were cut; None while they are not complete."""
        tally = self.follower.courses.tally
        return Summed(tally.sums, tally.through) if self.summing and tally is not None else None

    async def run(self, term: Term) -> None:
        """Keeps the sums until cancelled."""
        courses = self.follower.courses
        try:
            await self.follower.settled.wait()
            await self._begin(await self._read())
            seen, written = -1, 0.0
            while True:
                clock = asyncio.get_running_loop().time
                if courses.changes == seen and clock() < written + _IDLE_S:
                    await asyncio.sleep(_PACE_S)
                elif (again_s := await self._write(term)) is not None:
                    seen = -1
                    await asyncio.sleep(again_s)
                else:
                    seen, written = courses.changes, clock()
                    await asyncio.sleep(max(_PACE_S, self._size / _BYTES_PER_S))
        finally:
            self.summing = False
            self._stored = None
            courses.end()

    async def _begin(self, base: Checkpoint | None) -> None:
        self.summing = False
        now = self.follower.now()
        if base is not None and base.through > now + _AHEAD_S:
            base = self._happened(base, now)
        await self._caches.turns.finish(self.follower.courses.begin(base, now))
        self.summing = True

    def _happened(self, base: Checkpoint, now: int) -> Checkpoint | None:
        """What a clock that was ahead has written: the sums take that time back, but for those that began in the future only."""
        lost = base.began > now + _AHEAD_S
        _LOG.warning(
            "usage was written down by a clock that was ahead, or this one is behind; %s",
            "it is counted anew" if lost else "the sums come right, earlier days may not be told apart",
            extra={"configMap": f"{self._namespace}/{NAME}", "aheadSeconds": base.through - now},
        )
        return None if lost else base

    async def _read(self) -> Checkpoint | None:
        """What was written down, once that can be read; None where there is nothing, or nothing that is understood."""
        while True:
            try:
                self._stored = await self._get()
            except errors.KubeError as error:
                self._tell("usage cannot be read; it is not shown until then", error)
                await asyncio.sleep(_FAILED_S)
                continue
            try:
                return await self._decoded(self._stored)
            except UnknownVersionError as error:
                # It is not ours to overwrite: whoever wrote it will come back.
                self._stored = None
                self._tell("usage was written down by another version; it is kept in memory only", error)
            except CheckpointError as error:
                self._tell("usage that was written down is lost: it cannot be read", error)
            return None

    async def _get(self) -> Json | None:
        try:
            return await self._client.get(CONFIG_MAPS, NAME, self._namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound as error:
            self._tell("there is nowhere to write usage down; it is kept in memory only", error)
            return None

    async def _write(self, term: Term) -> float | None:
        """Writes once, as far as it leads and has heard of everything lately. None when it has, else for how long to wait before the next try."""
        if self._stored is None:
            await self._take_what_is_there()
        stale_s = self._caches.pods.staleness_s()
        if self._stored is None or not term.valid() or stale_s is None or stale_s > _STALE_S:
            return _FAILED_S
        courses = self.follower.courses
        assert courses.tally is not None
        await self._caches.turns.finish(self._scribe.prepare(courses.tally))
        now = self.follower.now()
        courses.tally.cut(now)
        written = self._scribe.write(courses.tally, courses.listed(now))
        self._size = written.size
        metadata = {key: value for key, value in self._stored["metadata"].items() if key != "managedFields"}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": written.data,
            "binaryData": written.binary,
        }
        try:
            self._stored = await self._client.replace(
                CONFIG_MAPS, body, self._namespace, timeout_s=_TIMEOUT_S
            )
        except errors.Conflict:
            self._metrics.usage_writes.labels("retried").inc()
            await self._take_what_is_there()
            return _PACE_S
        except errors.KubeError as error:
            self._metrics.usage_writes.labels("failed").inc()
            self._tell("usage is not written down; it is kept in memory only", error)
            if isinstance(error, errors.NotFound):
                self._stored = None
            return _FAILED_S
        self._told = ""
        self._metrics.usage_writes.labels("done").inc()
        self._metrics.usage_written.set(now)
        return None

    async def _take_what_is_there(self) -> None:
        """What is empty, because it was made anew, takes the sums as they are; what has some is what they rest on."""
        try:
            self._stored = await self._get()
        except errors.KubeError as error:
            self._stored = None
            self._tell("usage is not written down; it is kept in memory only", error)
            return
        if self._stored is None or _empty(self._stored):
            return
        try:
            await self._begin(await self._decoded(self._stored))
        except UnknownVersionError as error:
            self._stored = None
            self._tell("usage was written down by another version; it is kept in memory only", error)
        except CheckpointError as error:
            # Here the sums are complete, there they are not.
            self._tell("usage that was written down cannot be read, and is written anew", error)

    async def _decoded(self, stored: Json | None) -> Checkpoint | None:
        if stored is None:
            return None
        steps = decoding(read.mapping(stored, "data"), read.mapping(stored, "binaryData"))
        return await self._caches.turns.finish(steps)

    def _tell(self, what: str, error: Exception) -> None:
        """Once, until something else is to be told or a write has succeeded."""
        if self._told != what:
            self._told = what
            _LOG.warning(
                what, extra={"configMap": f"{self._namespace}/{NAME}", "error": errors.describe(error)}
            )


def _empty(stored: Json) -> bool:
    return not (read.mapping(stored, "data") or read.mapping(stored, "binaryData"))
