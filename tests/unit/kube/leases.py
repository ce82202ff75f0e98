"""A Lease as an API server keeps it, candidates' ways to it, and a leader's work that notes when it runs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from prometheus_client import CollectorRegistry

from kube import errors
from kube.election import Elector
from kube.lease import Durations, Term
from kube.metrics import Metrics
from kube.resources import Resource

Json = dict[str, Any]
Trouble = Literal["refused", "hangs", "answer lost"]

REQUEST_S = Durations().request_s


@dataclass
class Store:
    """The one Lease, as an API server keeps it."""

    lease: Json | None = None
    version: int = 0
    writes: int = 0

    def put(self, body: Json) -> Json:
        self.version += 1
        self.writes += 1
        head = body["metadata"] | {"resourceVersion": str(self.version)}
        self.lease = body | {"metadata": head}
        return self.lease

    def delete(self) -> None:
        """As kubectl delete lease."""
        self.lease = None

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


@dataclass
class Network:
    """One elector's way to the store, with latency and troubles. A request ends at its time-out, as a client's does."""

    store: Store
    latency: Callable[[], float] = lambda: 0.1
    trouble: Callable[[], Trouble | None] = lambda: None
    log: list[str] = field(default_factory=list)

    async def get(
        self, _resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        def read() -> Json:
            if self.store.lease is None:
                raise errors.NotFound(404)
            return self.store.lease

        return await self._call("get", read, timeout_s)

    async def create(
        self, _resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        def make() -> Json:
            if self.store.lease is not None:
                raise errors.AlreadyExists(409)
            return self.store.put(body)

        return await self._call("create", make, timeout_s)

    async def replace(
        self, _resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        def change() -> Json:
            if self.store.lease is None:
                raise errors.NotFound(404)
            if body["metadata"]["resourceVersion"] != self.store.lease["metadata"]["resourceVersion"]:
                raise errors.Conflict(409)
            return self.store.put(body)

        return await self._call("replace", change, timeout_s)

    async def _call(self, verb: str, action: Callable[[], Json], timeout_s: float) -> Json:
        assert timeout_s <= REQUEST_S
        self.log.append(verb)
        latency_s = self.latency()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(action, self.trouble(), latency_s)
        except TimeoutError:
            raise errors.ConnectionFailed("timed out") from None

    async def _exchange(self, action: Callable[[], Json], trouble: Trouble | None, latency_s: float) -> Json:
        await asyncio.sleep(latency_s / 2)
        if trouble == "refused":
            raise errors.ConnectionFailed("refused")
        if trouble == "hangs":
            await asyncio.Event().wait()
        result = action()
        await asyncio.sleep(latency_s / 2)
        if trouble == "answer lost":
            raise errors.ConnectionFailed("cut")
        return result


def elector(network: Network, identity: str = "a", **options: Any) -> Elector:
    options.setdefault("rng", Random(identity))
    options.setdefault("metrics", Metrics(CollectorRegistry()))
    return Elector(network, "system", "cardquota", identity, **options)


@dataclass
class Work:
    """A leader's work: notes when it runs, and takes a while to end."""

    cleanup_s: float = 0.0
    spans: list[list[float]] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    leaving: Json = field(default_factory=dict)
    """What it leaves behind in each term."""

    @property
    def leads(self) -> bool:
        """Whether the work is under way, in a term that has not ended."""
        return bool(self.terms) and self.terms[-1].valid()

    async def __call__(self, term: Term) -> None:
        clock = asyncio.get_running_loop().time
        self.terms.append(term)
        self.spans.append([clock()])
        try:
            await asyncio.Event().wait()
        finally:
            term.leaving = self.leaving
            try:
                await asyncio.sleep(self.cleanup_s)
            finally:
                self.spans[-1].append(clock())


async def until(holds: Callable[[], bool]) -> None:
    """Returns within a hundredth of a second, of virtual time, after this came to be so."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
