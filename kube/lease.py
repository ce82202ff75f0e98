"""Leader election on a Lease, such that the leader's work has ended before anybody else can lead.

Three times decide, as in client-go: a lease holds for `lease_s` after the others saw it renewed; the holder gives up
by itself `renew_deadline_s` after its last renewal began; it tries each `retry_s`. Between the second and the first
lies the time in which the work is cancelled and awaited. All of it is measured on each process' own monotonic clock:
the times written into the Lease are for people, and wrong wall clocks do no harm.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from types import MappingProxyType
from typing import Any, Protocol

from kube import errors
from kube.client import Json
from kube.metrics import DEFAULT, Metrics
from kube.resources import LEASES, Resource
from kube.times import micro_time

_LOG = logging.getLogger(__name__)

Clock = Callable[[], float]

_TOO_LATE_S = 0.01
"""With less than this left of a term no renewal is tried any more."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds. They have to decrease strictly, else two leaders could overlap: ValueError."""

    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_deadline_s > self.retry_s > 0:
            raise ValueError(f"not lease > renew deadline > retry > 0: {self}")


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


class Term:
    """One time of leading. `epoch` grows from term to term, whoever leads (it is the Lease's leaseTransitions)."""

    def __init__(self, epoch: int, clock: Clock, valid_until: float) -> None:
        self.epoch = epoch
        self._clock = clock
        self._valid_until = valid_until

    def valid(self) -> bool:
        """Whether nobody else can lead now. To be asked right before every write of the leader."""
        return self._clock() < self._valid_until

    def remaining_s(self) -> float:
        """Seconds for which `valid` stays true without a further renewal."""
        return max(0.0, self._valid_until - self._clock())

    def extend(self, valid_until: float) -> None:
        """The lease was renewed. Only the elector calls this."""
        self._valid_until = valid_until

    def end(self) -> None:
        """The lease was lost or given back: never valid again. Only the elector calls this."""
        self._valid_until = float("-inf")


class Elector:
    """Campaigns for one Lease under one identity, which no other process may use, an earlier life included.

    `annotations` are put on the Lease by whoever holds it, for the standbys to read (an address to forward to); they
    may be exchanged while running, the next renewal writes them.
    """

    def __init__(
        self,
        client: LeaseStore,
        namespace: str,
        name: str,
        identity: str,
        *,
        annotations: Mapping[str, str] = MappingProxyType({}),
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
        self._durations = durations or Durations()
        self._given_clock = clock
        self._now = now
        self._rng = rng or Random()  # noqa: S311 - spreads attempts, protects nothing
        self._leader = metrics.leader.labels(name)
        self._failures = metrics.lease_failures.labels(name)
        self._term: Term | None = None
        self._lease: Json | None = None
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
    def is_leader(self) -> bool:
        """Whether this process leads now."""
        return self._term is not None and self._term.valid()

    @property
    def term(self) -> Term | None:
        """The present term while leading."""
        return self._term

    @property
    def holder(self) -> tuple[str, Mapping[str, str]] | None:
        """Identity and annotations of the holder when the Lease was last read; None for a free or unknown Lease."""
        if self._lease is None:
            return None
        identity = _holder(self._lease)
        return (identity, _annotations(self._lease)) if identity else None

    async def run(self, lead: Callable[[Term], Awaitable[None]]) -> None:
        """Campaigns for ever, and runs `lead` in a task while leading.

        When the lease cannot be renewed in time, the task is cancelled and awaited, and the campaign goes on. When
        `lead` ends by itself, the lease is given back and this returns, or raises what `lead` raised. When cancelled,
        the task is cancelled and awaited, then the lease is given back, so that a successor need not wait for its end.
        """
        try:
            while True:
                term = await self._acquire()
                if await self._hold(term, lead):
                    return
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
        finally:
            try:
                await _end(work)
            finally:
                term.end()
                self._term = None
                self._leader.set(0)
        if not work.cancelled():
            work.result()
        if not ended:
            _LOG.warning("lease lost", extra={"lease": self._name, "epoch": term.epoch})
        return ended

    async def _renew_while(self, term: Term, work: "asyncio.Future[None]") -> None:
        """Returns when the work is done or the lease is not to be held any longer."""
        while True:
            await asyncio.wait({work}, timeout=min(self._durations.retry_s, term.remaining_s()))
            # A timer may fire a hair before the clock shows its time, hence not `valid`.
            if work.done() or term.remaining_s() < _TOO_LATE_S or not await self._renew(term):
                return

    async def _renew(self, term: Term) -> bool:
        """Whether the term may go on as far as is known: false when somebody else holds the lease."""
        started = self._clock()
        try:
            async with asyncio.timeout(min(self._durations.retry_s, term.remaining_s())):
                if self._outdated:
                    self._observe(await self._read())
                lease = self._lease
                if lease is None or _holder(lease) != self._identity:
                    return False
                await self._write(lease, epoch=term.epoch, holder=self._identity)
        except (errors.KubeError, TimeoutError) as error:
            self._failed("renew", error)
            return True
        term.extend(started + self._durations.renew_deadline_s)
        self._last_failure = ""
        return True

    async def _try_acquire(self) -> Term | None:
        started = self._clock()
        try:
            async with asyncio.timeout(self._durations.retry_s):
                self._observe(await self._read())
                if not self._free():
                    self._last_failure = ""
                    return None
                started = self._clock()
                epoch = 0 if self._lease is None else _transitions(self._lease) + 1
                await self._write(self._lease, epoch=epoch, holder=self._identity)
        except (errors.KubeError, TimeoutError) as error:
            self._failed("acquire", error)
            return None
        self._last_failure = ""
        return Term(epoch, self._clock, started + self._durations.renew_deadline_s)

    def _free(self) -> bool:
        """Whether the Lease may be taken: nobody's, ours, or not renewed for as long as its holder promised to."""
        if self._lease is None or _holder(self._lease) in {"", self._identity}:
            return True
        return self._clock() >= self._seen_at + self._promised_s(self._lease)

    def _promised_s(self, lease: Json) -> float:
        duration = _spec(lease).get("leaseDurationSeconds")
        return float(duration) if isinstance(duration, int) and duration > 0 else self._durations.lease_s

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(
                LEASES, self._name, self._namespace, timeout_s=self._durations.retry_s
            )
        except errors.NotFound:
            return None

    def _observe(self, lease: Json | None) -> None:
        """Remembers the Lease, and when it was last seen to change: from then on the holder's time runs."""
        version = "" if lease is None else str(lease["metadata"].get("resourceVersion", ""))
        if version != self._seen_version:
            self._seen_version = version
            self._seen_at = self._clock()
        self._lease = lease
        self._outdated = False

    async def _write(self, lease: Json | None, *, epoch: int, holder: str) -> None:
        """Stores the Lease as held by `holder`; raises Conflict when it is not as it was read."""
        metadata: Json = dict(lease["metadata"]) if lease is not None else {"name": self._name}
        metadata.pop("managedFields", None)
        kept = {key: value for key, value in _annotations(lease).items() if key not in self.annotations}
        metadata["annotations"] = kept | (dict(self.annotations) if holder else {})
        now = micro_time(self._now())
        spec = dict(_spec(lease)) | {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(self._durations.lease_s),
            "renewTime": now,
            "leaseTransitions": epoch,
        }
        if holder and (lease is None or _holder(lease) != holder):
            spec["acquireTime"] = now
        body: Json = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": spec,
        }
        # Until the answer is here nobody knows which of the two states is stored.
        self._outdated = True
        self._may_hold = self._may_hold or bool(holder)
        call = self._client.create if lease is None else self._client.replace
        stored = await call(LEASES, body, self._namespace, timeout_s=self._durations.retry_s)
        self._observe(stored)

    async def _release(self) -> None:
        """Gives the lease back if it is ours; a failure only costs the successor the waiting time."""
        if not self._may_hold:
            return
        try:
            async with asyncio.timeout(self._durations.retry_s):
                if self._outdated:
                    self._observe(await self._read())
                lease = self._lease
                if lease is None or _holder(lease) != self._identity:
                    return
                await self._write(lease, epoch=_transitions(lease), holder="")
        except (errors.KubeError, TimeoutError) as error:
            self._failed("release", error)
            return
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


def _spec(lease: Json | None) -> Mapping[str, Any]:
    spec = lease.get("spec") if lease is not None else None
    return spec if isinstance(spec, dict) else {}


def _holder(lease: Json) -> str:
    return str(_spec(lease).get("holderIdentity") or "")


def _transitions(lease: Json) -> int:
    count = _spec(lease).get("leaseTransitions")
    return count if isinstance(count, int) else 0


def _annotations(lease: Json | None) -> Mapping[str, str]:
    annotations = lease["metadata"].get("annotations") if lease is not None else None
    return annotations if isinstance(annotations, dict) else {}
