"""`python -m tests.apiserver.attacker SECONDS PORT=PATH[,tls]...`: somebody on the pod network who means to wear ports out.

From each of three addresses of its own, on every port named, all at once: bodies of 63 MiB, bodies that are announced and come
byte by byte, and 500 connections that are held, half of them with headers that never end, half after a question that nobody
serves; and TLS handshakes that are begun and left, which cost the other side a signature each, and nothing here. A process of its
own, for it takes all the time that it gets.
"""

import asyncio
import logging
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress

ADDRESSES = ("127.0.0.66", "127.0.0.67", "127.0.0.68")
CONNECTIONS = 500
LARGE = 63 * 2**20

_SLOW = 10
_LARGE = 2
_BEGUN = 100
_ERRORS = (OSError, EOFError, ssl.SSLError, TimeoutError)


class Target:
    """One port and a path there, and the address to go there from."""

    def __init__(self, text: str, address: str) -> None:
        self._address = address
        port, _, rest = text.partition("=")
        self.path, _, tls = rest.partition(",")
        self.port = int(port)
        self.tls: ssl.SSLContext | None = None
        if tls:
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


async def _again_and_again(target: Target, attempt: object) -> None:
    while True:
        with suppress(*_ERRORS):
            reader, writer = await target.connect()
            try:
                await attempt(target, reader, writer)  # type: ignore[operator]
            finally:
                writer.close()
        await asyncio.sleep(0.05)


async def _large(target: Target, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(target.head(LARGE))
    piece = b" " * 2**16
    for _ in range(LARGE // len(piece)):
        writer.write(piece)
        await writer.drain()


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
    writer.write(f"GET /nowhere{target.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    while await reader.read(2**10):
        pass


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


async def _attack(seconds: float, targets: Sequence[Target]) -> None:
    waves = ((_large, _LARGE), (_slow, _SLOW), (_held, CONNECTIONS // 2), (_asked, CONNECTIONS // 2))
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            for target in targets:
                for _ in range(_BEGUN if target.tls else 0):
                    tasks.create_task(_begun(target))
                for attempt, count in waves:
                    for _ in range(count):
                        tasks.create_task(_again_and_again(target, attempt))


def main(arguments: Sequence[str]) -> int:
    """Attack for so long."""
    seconds, *targets = arguments
    # A connection that the other side has closed is no news here.
    logging.disable()
    asyncio.run(_attack(float(seconds), [Target(text, address) for address in ADDRESSES for text in targets]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
