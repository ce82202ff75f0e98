"""`python -m tests.apiserver.attacker SECONDS TARGET...`: somebody on the pod network who means to wear ports out.

From each of three addresses of its own, on every port named, all at once: bodies of 63 MiB, bodies that are announced and come
byte by byte, and 500 connections that are held, half of them with headers that never end, half for questions that are not
answered, with tokens that nobody knows; and TLS handshakes that are begun and left, which cost the other side a signature each,
and nothing here. Where a port is given with a question that is served, that is asked in place of all this: the connections that
are let in for it are kept, and many such questions at a time sent on each without end. Where the most is named that a body may have
there, nothing but bodies is sent: such as are larger, and such as are as large as may be and lack their last byte. A process of
its own, for it takes all the time that it gets.
"""

import asyncio
import json
import logging
import secrets
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Self

ADDRESSES = ("127.0.0.66", "127.0.0.67", "127.0.0.68")
CONNECTIONS = 500
LARGE = 63 * 2**20

_SLOW = 10
_LARGE = 2
_BEGUN = 100
_KEPT = 20
_TOGETHER = 30
_UNENDED = 10
_ERRORS = (OSError, EOFError, ssl.SSLError, TimeoutError)


@dataclass(frozen=True)
class Port:
    """What is attacked: a port, a path there, and the text of a whole request that is served, if it is to be kept busy with that.

    `limit` are the bytes that a body may have there, if it is to be sent nothing but bodies.
    """

    number: int
    path: str
    tls: bool = False
    served: str = ""
    limit: int = 0

    @property
    def text(self) -> str:
        """As an argument of this program."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """What `text` has made."""
        return cls(**json.loads(text))


class Target:
    """One port, and the address to go there from."""

    def __init__(self, port: Port, address: str) -> None:
        self._address = address
        self.port, self.path = port.number, port.path
        self.served, self.limit = port.served.encode(), port.limit
        self.tls: ssl.SSLContext | None = None
        if port.tls:
            self.tls = ssl.create_default_context()
            self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            ssl=self.tls,
            local_addr=(self._address, 0),
            server_hostname=self.tls and "x",
        )

    async def connect_without_tls(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self._address, 0))

    def head(self, length: int) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {length}\r\n\r\n".encode()

    async def send(self, writer: asyncio.StreamWriter, length: int, sent: int) -> None:
        """So many bytes of a body of this length."""
        writer.write(self.head(length))
        for begin in range(0, sent, 2**16):
            writer.write(b" " * min(2**16, sent - begin))
            await writer.drain()


Attempt = Callable[[Target, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _again_and_again(target: Target, attempt: Attempt) -> None:
    while True:
        with suppress(*_ERRORS):
            reader, writer = await target.connect()
            try:
                await attempt(target, reader, writer)
            finally:
                writer.close()
        await asyncio.sleep(0.05)


async def _large(target: Target, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await target.send(writer, LARGE, LARGE)


async def _unended(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await target.send(writer, target.limit, target.limit - 1)
    await reader.read()


async def _slow(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(target.head(7 * 2**20))
    while not reader.at_eof():
        writer.write(b"{")
        await writer.drain()
        await asyncio.sleep(0.5)


async def _held(_target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n")
    await reader.read()


async def _asked(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not reader.at_eof():
        token = f"Authorization: Bearer {secrets.token_urlsafe(12)}"
        writer.write(f"GET {target.path} HTTP/1.1\r\nHost: x\r\n{token}\r\n\r\n".encode())
        await reader.read(2**12)


async def _kept(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(target.served)
    while await reader.read(2**16):
        writer.write(target.served * _TOGETHER)
        await writer.drain()


def _hello() -> bytes:
    """A ClientHello, the same for all."""
    context, written = ssl.create_default_context(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), written, server_hostname="x").do_handshake()
    return written.read()


HELLO = _hello()


async def _begun(target: Target) -> None:
    """Handshakes, one after the other."""
    while True:
        with suppress(*_ERRORS):
            reader, writer = await target.connect_without_tls()
            writer.write(HELLO)
            await reader.read(1)
            writer.transport.abort()


def _waves(target: Target) -> tuple[tuple[Attempt, int], ...]:
    """What is done on a port, and by how many at a time."""
    if target.served:
        return ((_kept, _KEPT),)
    if target.limit:
        return (_large, _LARGE), (_unended, _UNENDED)
    return (_large, _LARGE), (_slow, _SLOW), (_held, CONNECTIONS // 2), (_asked, CONNECTIONS // 2)


async def _attack(seconds: float, targets: Sequence[Target]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            for target in targets:
                for _ in range(_BEGUN if target.tls and not (target.served or target.limit) else 0):
                    tasks.create_task(_begun(target))
                for attempt, count in _waves(target):
                    for _ in range(count):
                        tasks.create_task(_again_and_again(target, attempt))


def main(arguments: Sequence[str]) -> int:
    """Attack for so long."""
    seconds, *texts = arguments
    # A connection that the other side has closed is no news here.
    logging.disable()
    ports = [Port.parse(text) for text in texts]
    asyncio.run(_attack(float(seconds), [Target(port, address) for address in ADDRESSES for port in ports]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
