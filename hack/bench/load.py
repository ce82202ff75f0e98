"""`python -m hack.bench.load`: the load maker, a process of its own so that it takes no time from the servers' loops.

Each line of standard input is an Order as JSON; each is answered by one line, a Tally. The HTTP client is no more
than is needed to keep connections busy: a client of full scope would be slower than the servers.
"""

import asyncio
import re
import ssl
import sys
import time
from dataclasses import asdict, dataclass
from math import ceil
from typing import Final, cast

import orjson

from hack.bench.clock import cpu_s_of
from kube.tls import client_context

HOST: Final = "127.0.0.1"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_END: Final = b"\r\n\r\n"
_WARM_UP: Final = 4
"""Requests per connection before the clock starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to send: `requests` in total over `connections`, each of which sends the next when the last is answered.

    Every answer must have status 200 and contain `expect`. `pid` is the server's, for the processor time it takes.
    """

    pid: int
    port: int
    ca: str
    path: str
    body: str
    expect: str
    requests: int
    connections: int
    limit_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Tally:
    """How it went. `problem` is empty when all requests were answered as expected."""

    per_s: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    cpu_us: float = 0.0
    problem: str = ""


def main() -> int:
    """Serves orders until the standard input is closed."""
    for line in sys.stdin:
        tally = asyncio.run(measured(Order(**orjson.loads(line))))
        print(orjson.dumps(asdict(tally)).decode(), flush=True)
    return 0


async def measured(order: Order) -> Tally:
    """Carries one order out; never longer than its limit."""
    try:
        async with asyncio.timeout(order.limit_s):
            return await _Run(order).run()
    except TimeoutError:
        return Tally(problem=f"not finished within {order.limit_s:g} s")
    except OSError as error:
        return Tally(problem=f"{type(error).__name__}: {error}")


class _Run:
    def __init__(self, order: Order) -> None:
        body = order.body.encode()
        head = (
            f"POST {order.path}?timeout=5s HTTP/1.1\r\nHost: {HOST}:{order.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.request = head.encode() + body
        self._order = order
        self._expect = order.expect.encode()
        self._connections: list[_Connection] = []
        self._latencies: list[float] = []
        self._left = 0
        self._open = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> Tally:
        context = client_context(self._order.ca.encode())
        try:
            for _ in range(self._order.connections):
                await self._connect(context)
            await self._send(_WARM_UP * self._order.connections)
            self._latencies.clear()
            started, cpu_s = time.perf_counter(), cpu_s_of(self._order.pid)
            await self._send(self._order.requests)
            seconds, cpu_s = time.perf_counter() - started, cpu_s_of(self._order.pid) - cpu_s
        except _UnexpectedError as error:
            return Tally(problem=str(error))
        finally:
            for connection in self._connections:
                connection.close()
        times = sorted(self._latencies)
        return Tally(
            per_s=len(times) / seconds,
            p50_ms=_percentile(times, 50) * 1000,
            p99_ms=_percentile(times, 99) * 1000,
            cpu_us=cpu_s / len(times) * 1e6,
        )

    async def _connect(self, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: _Connection(self), HOST, self._order.port, ssl=context, server_hostname=HOST
        )
        self._connections.append(connection)

    async def _send(self, requests: int) -> None:
        """Returns when so many requests have been answered."""
        self._done = asyncio.get_running_loop().create_future()
        self._left = requests
        for connection in self._connections[:requests]:
            self._next(connection)
        await self._done

    def _next(self, connection: "_Connection") -> None:
        self._left -= 1
        self._open += 1
        connection.send()

    def answered(self, connection: "_Connection", answer: bytes, seconds: float) -> None:
        """Takes an answer in, and sends the next request while there are any left."""
        self._latencies.append(seconds)
        if not answer.startswith(b"HTTP/1.1 200 ") or self._expect not in answer:
            self.failed(answer[:300].decode(errors="replace"))
        self._open -= 1
        if self._left > 0:
            self._next(connection)
        elif self._open == 0 and not self._done.done():
            self._done.set_result(None)

    def failed(self, what: str) -> None:
        """Ends the run, unless it has ended already: connections are closed in the end."""
        if self._open and not self._done.done():
            self._done.set_exception(_UnexpectedError(f"unexpected answer: {what}"))


class _UnexpectedError(Exception):
    """A server that answers otherwise than it should is not measured."""


class _Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request on its way."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._transport: asyncio.WriteTransport | None = None
        self._received = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # TLS or not, it can write; the protocol's signature does not say so.
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._run.failed(f"the connection was closed ({exc})")

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_END)
        length = _LENGTH.search(self._received, 0, end + 2) if end >= 0 else None
        if length is None or len(self._received) < end + len(_END) + int(length[1]):
            return
        answer, self._received = self._received, b""
        self._run.answered(self, answer, time.perf_counter() - self._sent)

    def send(self) -> None:
        assert self._transport is not None, "only called once the connection is made"
        self._sent = time.perf_counter()
        self._transport.write(self._run.request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _percentile(ascending: list[float], percent: int) -> float:
    return ascending[max(ceil(len(ascending) * percent / 100) - 1, 0)]


if __name__ == "__main__":
    sys.exit(main())
