"""How many connections a port takes, and for how long one may keep silent.

Each costs memory before anything was asked, so whoever opens them must not be able to open any number, or to keep them. Where
all places are taken, the newcomer gets one of those who have proven nothing: to be refused would cost an API server its request.

asyncio tells a server of a TLS connection when its handshake is done, and until then nobody counts it. Where a handshake fails,
it leaves all that belongs to the connection to the garbage collector, some 100 KiB that are found after minutes. So handshakes
are begun here, in a connection that has its place already, and not faster than `kube.handshakes` has it.
"""

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from kube.handshakes import Turns
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

TLS_BUFFER: Final = 32 * 1024
"""Bytes that each TLS connection has for what it reads, from its handshake on; a TLS record has up to 16 KiB."""

_END: Final = b"\r\n\r\n"

Factory = Callable[[], asyncio.Protocol]


class Doors:
    """Lets connections in to one port; to be given to the event loop in place of `inner`.

    One is proven once it has asked something that is served. When there is no room, one gives way to the newcomer: the oldest
    that is not proven, and only where all are, the one whose last answer is the longest ago. It is one of the address that
    has the most of them, so that whoever opens many takes the places of its own.
    """

    def __init__(
        self,
        inner: Factory,
        *,
        tls: ssl.SSLContext | None = None,
        name: str = "http",
        most: int = CONNECTIONS,
        of_one: int = CONNECTIONS_OF_ONE,
        headers_s: float = HEADERS_S,
        metrics: Metrics = DEFAULT,
        turns: Turns | None = None,
    ) -> None:
        self._inner = inner
        self._tls = tls
        self._most = most
        self._of_one = of_one
        self.headers_s = headers_s
        self.turns = turns or Turns()
        self._new = _Crowd()
        self._proven = _Crowd()
        self._silent = metrics.connections_refused.labels(name, "silent")
        self._full = metrics.connections_refused.labels(name, "too-many")

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a connection that is coming."""
        door = _Door(self, self._inner)
        return door if self._tls is None else _Threshold(door, self._tls)

    @property
    def open(self) -> int:
        """How many connections there are."""
        return self._new.size + self._proven.size

    def enter(self, door: "_Door") -> None:
        """One more comes, for which another may have to go; it counts until `leave`."""
        if self._new.of(door.address) + self._proven.of(door.address) >= self._of_one:
            self._make_room(door.address)
        elif self.open >= self._most:
            self._make_room(None)
        self._new.add(door)

    def leave(self, door: "_Door") -> None:
        """One has gone; one that had to give way has gone already."""
        self._new.drop(door)
        self._proven.drop(door)

    def prove(self, door: "_Door") -> None:
        """One has asked, or been answered, what is served here."""
        if self._new.drop(door) or self._proven.drop(door):
            self._proven.add(door)
            self.turns.know(door.address)

    def is_proven(self, door: "_Door") -> bool:
        """Whether it ever has."""
        return self._proven.holds(door)

    def shut(self) -> None:
        """Nobody is let in any more: those go who have not got through their handshake."""
        for door in self._new.everyone():
            if not door.is_in:
                door.abort()

    def silent(self) -> None:
        """One was closed because it has not asked anything in time."""
        self._silent.inc()

    def _make_room(self, address: str | None) -> None:
        first = self._new.first(address) or self._proven.first(address)
        if first is not None:
            self._full.inc()
            self.leave(first)
            first.abort()


class _Crowd:
    """Connections by address, those of each in the order in which they came."""

    def __init__(self) -> None:
        self._by_address: dict[str, dict[_Door, None]] = {}
        self.size = 0

    def of(self, address: str) -> int:
        return len(self._by_address.get(address, ()))

    def holds(self, door: "_Door") -> bool:
        return door in self._by_address.get(door.address, ())

    def add(self, door: "_Door") -> None:
        self._by_address.setdefault(door.address, {})[door] = None
        self.size += 1

    def drop(self, door: "_Door") -> bool:
        """Whether it was here."""
        if not self.holds(door):
            return False
        theirs = self._by_address[door.address]
        del theirs[door]
        self.size -= 1
        if not theirs:
            del self._by_address[door.address]
        return True

    def everyone(self) -> "list[_Door]":
        return [door for theirs in self._by_address.values() for door in theirs]

    def first(self, address: str | None) -> "_Door | None":
        """The first of an address, or of the one that has the most."""
        if address is None:
            theirs = max(self._by_address.values(), key=len, default={})
        else:
            theirs = self._by_address.get(address, {})
        return next(iter(theirs), None)


class _Door(asyncio.Protocol):
    """One connection: passes everything on, once there is something to pass on."""

    def __init__(self, doors: Doors, inner: Factory) -> None:
        self._doors = doors
        self._make_inner = inner
        self._inner: asyncio.Protocol | None = None
        self.address = ""
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._seen: bytes | None = b""
        """The last bytes of headers that are not complete yet; None once the first ones were."""

    def arrive(self, transport: asyncio.BaseTransport) -> None:
        """Takes its place; before its handshake, where there is one."""
        assert isinstance(transport, asyncio.Transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._transport = transport
        self._doors.enter(self)

    def wait(self, begin: Callable[[], None]) -> Callable[[], None]:
        """Has `begin` called when its address may have a handshake; returns what takes that back."""
        return self._doors.turns.wait(self.address, begin)

    def depart(self) -> None:
        """Gives its place up."""
        self._doors.leave(self)
        self._no_deadline()
        self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._transport is None:
            self.arrive(transport)
        self._transport = transport
        self._inner = self._make_inner()
        self._inner.connection_made(transport)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._doors.headers_s, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self.depart()
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._seen is not None:
            self._seen = self._seen[-len(_END) + 1 :] + data
            if _END in self._seen:
                self._seen = None
                self._no_deadline()
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def prove(self) -> None:
        self._doors.prove(self)

    @property
    def is_in(self) -> bool:
        return self._inner is not None

    @property
    def is_proven(self) -> bool:
        return self._doors.is_proven(self)

    def abort(self) -> None:
        """Closes it at once, whatever is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _too_late(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._doors.silent()
            self._transport.abort()

    def _no_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Threshold(asyncio.Protocol):
    """Where a TLS connection comes in: from here it has a place, and waits for its turn to show who it is."""

    def __init__(self, door: _Door, context: ssl.SSLContext) -> None:
        self._door = door
        self._context = context
        self._transport: asyncio.Transport | None = None
        self._take_back: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # What it sends stays with the kernel until it is its turn; to take it in already would cost as much as the handshake.
        transport.pause_reading()
        self._door.arrive(transport)
        self._take_back = self._door.wait(self._begin)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._take_back is not None:
            self._take_back()
        self._door.depart()

    def _begin(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        tls = _Tls(self._door, self._context)
        transport.set_protocol(tls)
        tls.connection_made(transport)
        transport.resume_reading()


class _Tls(sslproto.SSLProtocol):
    """The handshake, and what is encrypted afterwards, as asyncio does it, with nobody who waits for the end of the handshake.

    The exception that tells of a failure would hold its frames, those the connection, and the last of them the exception.
    """

    def __init__(self, door: _Door, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            loop,
            door,
            context,
            None,  # type: ignore[arg-type]  # nobody waits
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_S,  # type: ignore[arg-type]  # a float is as good
            ssl_shutdown_timeout=HANDSHAKE_S,
        )
        self._door = door

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._door.depart()

    def _fatal_error(self, exc: BaseException, message: str = "Fatal error on transport") -> None:
        super()._fatal_error(exc, message)
        exc.__traceback__ = None


def keep_tls_small() -> None:
    """Has every TLS connection of this process begin with `TLS_BUFFER`.

    asyncio allocates 256 KiB for each, those of clients that never end their handshake too: a thousand take 256 MiB, where the
    allocator does not give them untouched pages. It has no parameter for it.
    """
    sslproto.SSLProtocol.max_size = TLS_BUFFER


def prove(request: web.Request) -> None:
    """The connection of this request belongs to somebody who has to be let in here."""
    door = _of(request)
    if door is not None:
        door.prove()


def answered(request: web.Request, response: web.StreamResponse) -> None:
    """To be called with every answer: a connection is proven by it, or closed after it if it never was and is at fault.

    Whoever is sent elsewhere has been served nothing: at the hook's port that is anybody who knows the paths of schedulers.
    """
    door = _of(request)
    if door is None:
        return
    if response.status < HTTPStatus.MULTIPLE_CHOICES or door.is_proven:
        door.prove()
    elif HTTPStatus.BAD_REQUEST <= response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        close_after(response)


def close_after(response: web.StreamResponse) -> None:
    """Has the connection closed after this answer, and the client told so."""
    response.force_close()
    response.headers["Connection"] = "close"


def _of(request: web.Request) -> _Door | None:
    """The door that a request came through; none in a server without them."""
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, _Door) else None
