"""How many connections a port takes, and for how long one may keep silent.

Each costs memory before anything was asked, so whoever opens them must not be able to open any number, or to keep them. Where
all places are taken, the newcomer gets one of those who have proven nothing: to be refused would cost an API server its request.

asyncio tells a server of a TLS connection when its handshake is done, and until then nobody counts it. Where a handshake fails,
it leaves all that belongs to the connection to the garbage collector, some 100 KiB that are found after minutes. So handshakes
are begun here, in a connection that has its place already, and not faster than `kube.handshakes` has it. What is sent afterwards is
passed on in the order of `kube.hearing`.
"""

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import web

from kube import hearing
from kube.handshakes import Turns
from kube.metrics import DEFAULT, Metrics
from kube.threshold import Entrant, Threshold

CONNECTIONS: Final = 1000
"""Of all clients of one port together. An API server opens as many as it has reviews under way, some hundred at most."""
CONNECTIONS_OF_ONE: Final = 800
"""Of one address, so that a single one does not keep all others out."""
HEADERS_S: Final = 10.0
"""How long it may take from there until the headers of the first request are complete."""
IDLE_S: Final = 100.0
"""How long a connection is kept without a request; API servers themselves give one up after 90 s."""
READ: Final = 32 * 1024
"""Bytes that are read at a time; of TLS connections as much."""
LINGER_S: Final = 1.0
"""How long is read, and thrown away, what a client still sends when it has its answer."""

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
        self.hearing = hearing.shared()
        self._new = _Crowd()
        self._proven = _Crowd()
        self._silent = metrics.connections_refused.labels(name, "silent")
        self._full = metrics.connections_refused.labels(name, "too-many")

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a connection that is coming."""
        door = _Door(self, self._inner)
        return door if self._tls is None else Threshold(door, self._tls)

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


class _Door(Entrant):
    """One connection: passes everything on, once there is something to pass on."""

    def __init__(self, doors: Doors, inner: Factory) -> None:
        self._doors = doors
        self._make_inner = inner
        self._inner: asyncio.Protocol | None = None
        self.address = ""
        self._transport: asyncio.Transport | None = None
        self._line: asyncio.Transport | None = None
        """What the bytes come on; below TLS, where there is that."""
        self._deadline: asyncio.TimerHandle | None = None
        self._seen: bytes | None = b""
        """The last bytes of headers that are not complete yet; None once the first ones were."""
        self._unheard: list[bytes] = []
        """What has come and waits to be passed on; after a second piece nothing more is read meanwhile."""
        self._paused = False
        self._trusted = False

    def arrive(self, transport: asyncio.BaseTransport) -> None:
        """Takes its place; before its handshake, where there is one."""
        assert isinstance(transport, asyncio.Transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._transport = self._line = transport
        self._doors.enter(self)

    def wait(self, begin: Callable[[], None]) -> Callable[[], None]:
        """Has `begin` called when its address may have a handshake; returns what takes that back."""
        return self._doors.turns.wait(self.address, begin)

    def depart(self) -> None:
        """Gives its place up."""
        self._doors.leave(self)
        self._doors.hearing.take_back(self.address, self._hear)
        self._no_deadline()
        self._transport = None
        if self._line is not None:
            # Of asyncio's: a method of its own, which would leave each line to the next full collection.
            cast("Any", self._line)._read_ready_cb = None  # noqa: SLF001 - there is no other way to it
            self._line = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._transport is None:
            self.arrive(transport)
        self._transport = transport
        # What is read at a time waits here to be heard, on each connection. There is no parameter for it.
        cast("Any", transport).max_size = READ
        self._inner = self._make_inner()
        self._inner.connection_made(transport)
        _forget_in_the_end(self._inner)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._doors.headers_s, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self.depart()
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._seen is not None:
            self._seen = self._seen[-len(_END) + 1 :] + data
            if _END in self._seen:
                self._seen = None
                self._no_deadline()
        waits = bool(self._unheard)
        self._unheard.append(data)
        if waits and self._transport is not None:
            # Whoever has asked a short question sends nothing more. Each time, for who is behind the door may have resumed; were
            # that to wait itself, nothing would have come.
            self._transport.pause_reading()
            self._paused = True
        elif self._trusted:
            self._hear()
        else:
            self._doors.hearing.ask(self.address, self._hear)

    def _hear(self) -> None:
        data, self._unheard = b"".join(self._unheard), []
        if self._paused and self._transport is not None:
            self._transport.resume_reading()
        self._paused = False
        self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
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

    def trust(self) -> None:
        """From now on it waits for nobody to be heard."""
        self._trusted = True

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


def prove(request: web.Request) -> None:
    """The connection of this request belongs to somebody who has to be let in, and to be heard, here."""
    door = _of(request)
    if door is not None:
        door.prove()
        door.trust()


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


def more_was_asked(request: web.Request) -> bool:
    """Whether the client has sent more requests before this one is answered: so that one turn is worth many of them.

    No API server, scheduler, probe or scraper does, and a client has to put up with a connection that is closed.
    """
    return bool(request.protocol._messages)  # noqa: SLF001 - there is no other way to know


def close_after(response: web.StreamResponse) -> None:
    """Has the connection closed after this answer, and the client told so."""
    response.force_close()
    response.headers["Connection"] = "close"


def _forget_in_the_end(inner: asyncio.Protocol) -> None:
    """Has the questions forgotten that were not answered when their connection has ended.

    They know it, and it knows them. A full collection may be half an hour away, and until then each connection of somebody who asks
    many at a time would leave some ten KiB.
    """
    task = inner._task_handler if isinstance(inner, web.RequestHandler) else None  # noqa: SLF001 - as above
    if task is not None:
        task.add_done_callback(lambda _: inner._messages.clear())  # type: ignore[attr-defined]  # noqa: SLF001


def _of(request: web.Request) -> _Door | None:
    """The door that a request came through; none in a server without them."""
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, _Door) else None
