"""How a TLS connection comes in: it has its place and waits for its turn before anything is done about its handshake."""

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import Final

HANDSHAKE_S: Final = 5.0
"""How long a TLS handshake may take."""
TLS_BUFFER: Final = 32 * 1024
"""Bytes that each TLS connection has for what it reads, from its handshake on; a TLS record has up to 16 KiB."""


class Entrant(asyncio.Protocol):
    """Who comes in."""

    def arrive(self, transport: asyncio.BaseTransport) -> None:
        """Takes its place; before its handshake, where there is one."""
        raise NotImplementedError

    def wait(self, begin: Callable[[], None]) -> Callable[[], None]:
        """Has `begin` called when its address may have a handshake; returns what takes that back."""
        raise NotImplementedError

    def depart(self) -> None:
        """Gives its place up."""
        raise NotImplementedError


class Threshold(asyncio.Protocol):
    """Where a TLS connection comes in: from here it has a place, and waits for its turn to show who it is."""

    def __init__(self, door: Entrant, context: ssl.SSLContext) -> None:
        self._door = door
        self._context = context
        self._transport: asyncio.Transport | None = None
        self._take_back: Callable[[], None] | None = None
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # What it sends stays with the kernel until it is its turn; to take it in already would cost as much as the handshake.
        transport.pause_reading()
        self._door.arrive(transport)
        take_back = self._door.wait(self._begin)
        # It leads back here; kept, it would leave all of a connection to the garbage collector.
        self._take_back = None if self._begun else take_back

    def connection_lost(self, _exc: Exception | None) -> None:
        """And has gone, before its turn came."""
        if self._take_back is not None:
            self._take_back()
            self._take_back = None
        self._door.depart()

    def _begin(self) -> None:
        self._begun, self._take_back = True, None
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

    def __init__(self, door: Entrant, context: ssl.SSLContext) -> None:
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
        # What nobody takes yet; 256 KiB otherwise.
        self._set_read_buffer_limits(high=TLS_BUFFER)  # type: ignore[attr-defined]  # not in typeshed
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
