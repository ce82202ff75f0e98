"""Leader election on a Lease, such that the leader's work has ended before anybody else can lead.

Three times decide, as in client-go: a lease holds for `lease_s` after the others saw it renewed; the holder gives up
by itself `renew_deadline_s` after its last renewal began; it tries each `retry_s`. Between the second and the first
lies the time in which the work is cancelled and awaited. All of it is measured on each process' own monotonic clock,
which goes on while the process is stopped: the times written into the Lease are for people, and wrong wall clocks do no
harm.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from random import Random
from types import MappingProxyType
from typing import Protocol, TypeVar

from kube import errors
from kube.client import Json
from kube.lease import Clock, Durations, Resigned, Term
from kube.lease_record import annotations_of, duration_of, held, holder_of, transitions_of, version_of
from kube.metrics import DEFAULT, Metrics
from kube.resources import LEASES, Resource

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_TOO_LATE_S = 0.01
"""With less than this left of a term no renewal is tried any more."""


class LeaseStore(Protocol):
    """The calls of kube.client.Client that an election makes."""

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.get."""

    async def create(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.create."""

    async def replace(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """See Client.replace."""


class Elector:
    """Campaigns for one Lease under one identity, which no other process may use, an earlier life included.

    `annotations`, with names of our own, are put on the Lease by whoever holds it, for the standbys to read (an address to
    forward to); they may be exchanged while running, the next renewal writes them. `preceded` says whether somebody has led
    before, as far as anything but the Lease tells: it is asked where there is none.
    """

    def __init__(
        self,
        client: LeaseStore,
        namespace: str,
        name: str,
        identity: str,
        *,
        annotations: Mapping[str, str] = MappingProxyType({}),
        preceded: Callable[[], bool] = lambda: False,
        durations: Durations | None = None,
        clock: Clock | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: Random | None = None,
        metrics: Metrics = DEFAULT,
    ) -> None:
        if not identity:
            raise ValueError("an empty identity means a free lease")
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self.annotations = annotations
        self._leaving: Mapping[str, str] = MappingProxyType({})
        """The annotations of a Lease that is given back, see Term.leaving."""
        self._preceded = preceded
        self._durations = durations or Durations()
        self._given_clock = clock
        self._now = now
        self._rng = rng or Random()  # noqa: S311 - spreads attempts, protects nothing
        self._leader = metrics.leader.labels(name)
        self._failures = metrics.lease_failures.labels(name)
        self._term: Term | None = None
        self._lease: Json | None = None
        self._vanished: Json | None = None
        """The Lease as it was before somebody deleted it."""
        self._alone_from = float("-inf")
        """When nobody can lead any more by a Lease that was deleted before this elector came."""
        self._last_epoch = -1
        self._seen_version = ""
        self._seen_at = 0.0
        self._outdated = True
        self._may_hold = False
        self._last_failure = ""

    @property
    def identity(self) -> str:
        """Whom this elector campaigns for."""
        return self._identity

    @property
    def holder(self) -> tuple[str, Mapping[str, str]] | None:
        """Identity and annotations of the holder when the Lease was last read; None for a free or unknown Lease."""
        if self._lease is None:
            return None
        identity = holder_of(self._lease)
        return (identity, annotations_of(self._lease)) if identity else None

    async def run(self, lead: Callable[[Term], Awaitable[None]]) -> None:
        """Campaigns for ever, and runs `lead` in a task while leading.

        When the lease cannot be renewed in time, or is somebody else's or gone, the task is cancelled and awaited, and
        the campaign goes on. When `lead` raises Resigned, the lease is given back, and the campaign goes on once others
        have had the time to lead. When `lead` ends otherwise by itself, the lease is given back and this returns, or
        raises what `lead` raised. When cancelled, the task is cancelled and awaited, then the lease is given back, so
        that a successor need not wait for its end.
        """
        try:
            while True:
                term = await self._acquire()
                try:
                    if await self._hold(term, lead):
                        return
                except Resigned as reason:
                    extra = {"lease": self._name, "epoch": term.epoch, "reason": str(reason)}
                    _LOG.warning("leadership given up", extra=extra)
                    await self._release()
                    await asyncio.sleep(self._durations.lease_s)
        finally:
            await self._release()

    async def _acquire(self) -> Term:
        while True:
            term = await self._try_acquire()
            if term is not None:
                _LOG.info("leading", extra={"lease": self._name, "epoch": term.epoch})
                return term
            await asyncio.sleep(self._rng.uniform(1.0, 1.2) * self._durations.retry_s)

    async def _hold(self, term: Term, lead: Callable[[Term], Awaitable[None]]) -> bool:
        """Leads until `lead` ends (true) or the lease is lost (false)."""
        self._term = term
        self._leader.set(1)
        work = asyncio.ensure_future(lead(term))
        try:
            await self._renew_while(term, work)
            ended = work.done()
            if not ended:
                # Somebody else may lead by now: the work writes nothing any more, not even while it ends.
                term.end()
        finally:
            try:
                await _end(work)
            finally:
                term.end()
                self._term = None
                self._leader.set(0)
                self._leaving = term.leaving
        if not work.cancelled():
            work.result()
        if not ended:
            _LOG.warning("lease lost", extra={"lease": self._name, "epoch": term.epoch})
        return ended

    async def _renew_while(self, term: Term, work: "asyncio.Future[None]") -> None:
        """Returns when the work is done or the lease is not to be held any longer.

        The attempts begin `retry_s` apart; what takes longer is followed by the next one at once.
        """
        due = self._clock() + self._durations.retry_s
        while True:
            wait_s = min(due - self._clock(), term.remaining_s())
            await asyncio.wait({work}, timeout=max(0.0, wait_s))
            # A timer may fire a hair before the clock shows its time, hence not `valid`.
            if work.done() or term.remaining_s() < _TOO_LATE_S:
                return
            due = self._clock() + self._durations.retry_s
            if not await self._renew(term):
                return

    async def _renew(self, term: Term) -> bool:
        """Whether the term may go on as far as is known. Tries for as long as the term lasts, not any longer."""
        try:
            async with asyncio.timeout(term.remaining_s()):
                return await self._looking_again("renew", lambda: self._renew_once(term))
        except (errors.KubeError, TimeoutError) as error:
            self._failed("renew", error)
            return True

    async def _renew_once(self, term: Term) -> bool:
        """Whether the lease was renewed, and is ours and in time."""
        if self._outdated:
            self._observe(await self._read())
        lease = self._lease
        if lease is None or holder_of(lease) != self._identity:
            return False
        sent = self._clock()
        await self._write(lease, epoch=term.epoch, holder=self._identity)
        if not term.valid():
            # This process was deaf. Whoever asked the term meanwhile has given up what it did, so it cannot go on.
            return False
        term.extend(sent + self._durations.renew_deadline_s)
        self._last_failure = ""
        return True

    async def _looking_again(self, action: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """What the attempt comes to, at the second try where the Lease was not as it was read.

        Somebody wrote or deleted it: whether it is ours has to be known now, not at the next renewal.
        """
        try:
            return await attempt()
        except (errors.Conflict, errors.NotFound) as error:
            self._failed(action, error)
            return await attempt()

    async def _try_acquire(self) -> Term | None:
        try:
            return await self._looking_again("acquire", self._claim)
        except (errors.KubeError, TimeoutError) as error:
            self._failed("acquire", error)
            return None

    async def _claim(self) -> Term | None:
        """The term that begins with our name in the Lease; None while it is somebody else's."""
        self._observe(await self._read())
        if not self._free():
            self._last_failure = ""
            return None
        sent, epoch, lease = self._clock(), self._last_epoch + 1, self._lease
        if lease is None and self._vanished is None and self._preceded():
            self._alone_from = sent + self._durations.lease_s
        # Others may have led since, and nobody here knows what they have left.
        self._leaving = MappingProxyType({})
        await self._write(lease, epoch=epoch, holder=self._identity)
        self._last_failure = ""
        left = annotations_of(lease) if lease is not None and not holder_of(lease) else None
        valid_until = sent + self._durations.renew_deadline_s
        return Term(epoch, self._clock, valid_until, left, alone_from=self._alone_from)

    def _free(self) -> bool:
        """Whether the Lease may be taken: nobody's, ours, or not renewed for as long as its holder promised to.

        The holder of a Lease that was deleted may not know it yet: its time runs from when that was seen.
        """
        lease = self._lease or self._vanished
        if lease is None or holder_of(lease) in {"", self._identity}:
            return True
        return self._clock() >= self._seen_at + duration_of(lease, self._durations.lease_s)

    async def _read(self) -> Json | None:
        limit_s = self._durations.request_s
        try:
            return await self._client.get(LEASES, self._name, self._namespace, timeout_s=limit_s)
        except errors.NotFound:
            return None

    def _observe(self, lease: Json | None) -> None:
        """Remembers the Lease, and when it was last seen to change: from then on the holder's time runs."""
        version = version_of(lease)
        if version != self._seen_version:
            self._seen_version = version
            self._seen_at = self._clock()
        if lease is not None:
            self._last_epoch = max(self._last_epoch, transitions_of(lease))
            self._vanished = None
        elif self._lease is not None:
            self._vanished = self._lease
        self._lease = lease
        self._outdated = False

    async def _write(self, lease: Json | None, *, epoch: int, holder: str) -> None:
        """Stores the Lease as held by `holder`; raises Conflict when it is not as it was read."""
        body = held(
            lease,
            self._name,
            holder=holder,
            epoch=epoch,
            annotations=self.annotations if holder else self._leaving,
            lease_s=self._durations.lease_s,
            now=self._now(),
        )
        # Until the answer is here nobody knows which of the two states is stored.
        self._outdated = True
        self._may_hold = self._may_hold or bool(holder)
        call = self._client.create if lease is None else self._client.replace
        self._observe(await call(LEASES, body, self._namespace, timeout_s=self._durations.request_s))

    async def _release(self) -> None:
        """Gives the lease back if it is ours; a failure only costs the successor the waiting time.

        It is kept while a former leader's term may go on: who follows would not know of that, and waits as long this way.
        """
        if not self._may_hold or self._clock() < self._alone_from:
            return
        try:
            async with asyncio.timeout(self._durations.request_s):
                await self._looking_again("release", self._give_back)
        except (errors.KubeError, TimeoutError) as error:
            self._failed("release", error)

    async def _give_back(self) -> None:
        if self._outdated:
            self._observe(await self._read())
        lease = self._lease
        if lease is None or holder_of(lease) != self._identity:
            return
        await self._write(lease, epoch=transitions_of(lease), holder="")
        self._may_hold = False
        _LOG.info("lease given back", extra={"lease": self._name})

    def _clock(self) -> float:
        return asyncio.get_running_loop().time() if self._given_clock is None else self._given_clock()

    def _failed(self, action: str, error: Exception) -> None:
        """Counts every failure and logs the first of a row of equal ones."""
        self._failures.inc()
        name = f"{action} {type(error).__name__}"
        expected = isinstance(error, errors.Conflict)  # somebody was quicker
        level = logging.DEBUG if expected or name == self._last_failure else logging.WARNING
        self._last_failure = name
        extra = {"lease": self._name, "action": action, "error": errors.describe(error)}
        _LOG.log(level, "lease request failed", extra=extra)


async def _end(work: "asyncio.Future[None]") -> None:
    """Cancels the work and returns when it has ended, however often this task is cancelled itself meanwhile."""
    interruption: asyncio.CancelledError | None = None
    work.cancel()
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as error:
            interruption = error
    if not work.cancelled() and work.exception() is not None:
        _LOG.debug("the leader's work ended with an error", exc_info=work.exception())
    if interruption is not None:
        raise interruption
