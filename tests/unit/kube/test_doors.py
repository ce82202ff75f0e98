"""A port that is held by many, or by those who say nothing: others get in, and memory is bounded."""

import asyncio
import gc
import socket
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from kube import pki, threshold
from kube.doors import HEADERS_S, Doors
from kube.metrics import Metrics
from kube.serving import Server, application
from kube.tls import ServingCertificate, client_context

SOON_S = min(HEADERS_S, threshold.HANDSHAKE_S) - 0.5


class Inner(asyncio.Protocol):
    """What gets in."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.data = b""
        self.lost = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost += 1


class World:
    def __init__(self, **limits: float) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.inner: list[Inner] = []
        self.doors = Doors(self._made, metrics=self.metrics, **limits)  # type: ignore[arg-type]
        self.port = 0

    def _made(self) -> Inner:
        self.inner.append(Inner())
        return self.inner[-1]

    def refused(self, cause: str) -> float | None:
        labels = {"server": "http", "cause": cause}
        return self.metrics.registry.get_sample_value("cardquota_connections_refused_total", labels)

    async def connect(self, address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))


@asynccontextmanager
async def listening(**limits: float) -> AsyncIterator[World]:
    world = World(**limits)
    server = await asyncio.get_running_loop().create_server(world.doors, "127.0.0.1", 0)
    world.port = server.sockets[0].getsockname()[1]
    try:
        yield world
    finally:
        server.close()
        await server.wait_closed()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether it is soon, long before the limits that there are where a test says nothing else."""
    try:
        async with asyncio.timeout(SOON_S):
            return await reader.read() == b""
    except ConnectionResetError:
        return True


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not happen")


async def test_a_newcomer_takes_the_place_of_the_oldest_of_the_address_that_has_the_most() -> None:
    async with listening(most=3) as world:
        lines = [await world.connect(address) for address in ("127.0.0.2", "127.0.0.1", "127.0.0.1")]
        await until(lambda: world.doors.open == 3)
        lines.append(await world.connect("127.0.0.3"))
        assert await is_closed(lines[1][0])
        assert [inner.lost for inner in world.inner] == [0, 1, 0, 0]
        assert (world.doors.open, world.refused("too-many")) == (3, 1.0)
        lines[3][1].write(b"x\r\n\r\n")
        await until(lambda: world.inner[-1].data != b"")
        for _, line in lines:
            line.close()
        await until(lambda: world.doors.open == 0)


async def test_an_address_that_has_its_share_takes_the_places_of_its_own() -> None:
    async with listening(most=9, of_one=2) as world:
        lines = [await world.connect("127.0.0.2")]
        lines += [await world.connect() for _ in range(3)]
        assert await is_closed(lines[1][0])
        assert [inner.lost for inner in world.inner] == [0, 1, 0, 0]
        assert (world.doors.open, world.refused("too-many")) == (3, 1.0)
        for _, line in lines:
            line.close()
        await until(lambda: world.doors.open == 0)


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: x\r\n\r"])
async def test_who_does_not_get_to_the_end_of_the_headers_is_closed(sent: bytes) -> None:
    async with listening(headers_s=0.3) as world:
        reader, writer = await world.connect()
        writer.write(sent)
        assert await is_closed(reader)
        assert world.refused("silent") == 1.0
        assert world.inner[0].lost == 1
        writer.close()


async def test_headers_that_come_byte_by_byte_but_in_time_are_fine() -> None:
    async with listening(headers_s=2.0) as world:
        reader, writer = await world.connect()
        for byte in b"GET / HTTP/1.1\r\nHost: x\r\n\r\n":
            writer.write(bytes([byte]))
            await writer.drain()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.3):
                await reader.read()
        assert world.inner[0].data.endswith(b"\r\n\r\n")
        assert world.refused("silent") == 0.0
        writer.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold, "HANDSHAKE_S", 0.3)


@pytest.mark.usefixtures("quick")
async def test_a_server_gives_up_a_handshake_that_does_not_end() -> None:
    bundle = pki.renewed(None, ["localhost"], datetime.now(UTC))
    serving = ServingCertificate(Metrics(CollectorRegistry()))
    serving.load(bundle.leaf.certificate, bundle.leaf.key)
    app = application()

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="here")

    app.router.add_get("/", answer)
    server = Server(app, "127.0.0.1", 0, serving.context)
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await is_closed(reader)
        writer.close()
        tls = client_context(bundle.ca_certificates)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://localhost:{server.port}/", ssl=tls) as response,
        ):
            assert await response.text() == "here"
    finally:
        await server.stop()


async def test_what_was_asked_in_vain_is_free_when_its_connection_is() -> None:
    """Many questions at a time, of which the first is answered; the next full collection may be far."""

    def unanswered() -> int:
        return sum(isinstance(each, aiohttp.StreamReader) for each in gc.get_objects())

    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    app = application()
    app.router.add_post("/", answer)
    server = Server(app, "127.0.0.1", 0, finish_s=1.0)
    await server.start()
    gc.collect()
    before = unanswered()
    gc.disable()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" * 20)
        assert (await reader.read()).count(b"200 OK") == 1
        writer.close()
        await until(lambda: unanswered() == before)
    finally:
        gc.enable()
        await server.stop()


@pytest.mark.parametrize("tls", [False, True])
async def test_what_is_left_of_a_connection_is_free_at_once(tls: bool) -> None:
    """Of one that asks nothing, too: whoever opens thousands and waits a little leaves no garbage that is found late."""

    def lines() -> int:
        return sum(isinstance(each, asyncio.Transport) for each in gc.get_objects())

    bundle = pki.renewed(None, ["localhost"], datetime.now(UTC))
    serving = ServingCertificate(Metrics(CollectorRegistry()))
    serving.load(bundle.leaf.certificate, bundle.leaf.key)
    server = Server(application(), "127.0.0.1", 0, serving.context if tls else None, finish_s=1.0)
    await server.start()
    gc.collect()
    before = lines()
    gc.disable()
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            await until(lambda: lines() > before)
            line.sendall(b"GET / HTTP/1.1\r\n")
            await asyncio.sleep(0)
        await until(lambda: lines() == before)
    finally:
        gc.enable()
        await server.stop()


async def test_a_tls_connection_begins_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of them with asyncio's own 256 KiB would be more than a container of ours has."""
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", 256 * 1024)
    server = Server(application(), "127.0.0.1", 0)
    await server.start()
    await server.stop()
    assert sslproto.SSLProtocol.max_size == threshold.TLS_BUFFER
