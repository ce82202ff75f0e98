"""How many connections a port takes, and for how long one may keep silent.

Each costs memory before anything was asked, so whoever opens them must not be able to open any number, or to keep them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from kube.metrics import DEFAULT, Metrics

CONNECTIONS: Final = 1000
"""Of all clients of one port together. An API server opens as many as it has reviews under way, some hundred at most."""
CONNECTIONS_OF_ONE: Final = 800
"""Of one address, so that a single one does not keep all others out."""
HANDSHAKE_S: Final = 5.0
"""How long a TLS handshake may take."""
HEADERS_S: Final = 10.0
"""How long it may take from there until the headers of the first request are complete."""
IDLE_S: Final = 100.0
"""How long a connection is kept without a request; API servers themselves give one up after 90 s."""
LINGER_S: Final = 1.0
"""How long is read, and thrown away, what a client still sends when it has its answer."""

_END: Final = b"\r\n\r\n"

Factory = Callable[[], asyncio.Protocol]


class Doors:
    """Lets connections in to one port; to be given to the event loop in place of `inner`."""

    def __init__(
        self,
        inner: Factory,
        *,
        name: str = "http",
        most: int = CONNECTIONS,
        of_one: int = CONNECTIONS_OF_ONE,
        headers_s: float = HEADERS_S,
        metrics: Metrics = DEFAULT,
    ) -> None:
        self._inner = inner
        self._most = most
        self._of_one = of_one
        self.headers_s = headers_s
        self._open = 0
        self._by_address: Counter[str] = Counter()
        self._silent = metrics.connections_refused.labels(name, "silent")
        self._full = metrics.connections_refused.labels(name, "too-many")

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a connection that is coming."""
        return _Door(self, self._inner())

    @property
    def open(self) -> int:
        """How many connections there are."""
        return self._open

    def enter(self, address: str) -> bool:
        """Whether one more may come from there; it counts until `leave`."""
        if self._open >= self._most or self._by_address[address] >= self._of_one:
            self._full.inc()
            return False
        self._open += 1
        self._by_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        """One of those that came from there has gone."""
        self._open -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def silent(self) -> None:
        """One was closed because it has not asked anything in time."""
        self._silent.inc()


class _Door(asyncio.Protocol):
    """One connection: passes everything on, once it has been let in."""

    def __init__(self, doors: Doors, inner: asyncio.Protocol) -> None:
        self._doors = doors
        self._inner = inner
        self._address: str | None = None
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._seen: bytes | None = b""
        """The last bytes of headers that are not complete yet; None once the first ones were."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        address = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._doors.enter(address):
            transport.abort()
            return
        self._address, self._transport = address, transport
        self._inner.connection_made(transport)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._doors.headers_s, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is None:
            return
        self._doors.leave(self._address)
        self._no_deadline()
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._seen is not None:
            if self._address is None:
                return
            self._seen = self._seen[-len(_END) + 1 :] + data
            if _END in self._seen:
                self._seen = None
                self._no_deadline()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._address is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _too_late(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._doors.silent()
            self._transport.abort()

    def _no_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
