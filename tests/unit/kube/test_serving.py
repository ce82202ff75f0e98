import asyncio
import errno
import socket
from io import BytesIO

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter
from yarl import URL

from kube import metrics
from kube.health import Health
from kube.serving import BODY_LIMIT, Server, application


class Slow:
    """A handler that answers when told."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()

    async def answer(self, _request: web.Request) -> web.Response:
        self.entered.set()
        await self.release.wait()
        return web.Response(text="done")


async def test_an_open_request_is_answered_after_the_port_is_closed() -> None:
    """The shutdown waits for it, while new connections are refused."""
    slow, app = Slow(), application()
    app.router.add_get("/slow", slow.answer)
    server = Server(app, "127.0.0.1", 0)
    await server.start()
    port = server.port
    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(session.get(f"http://127.0.0.1:{port}/slow"))
        await slow.entered.wait()
        stopping = asyncio.create_task(server.stop())
        for _ in range(200):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:  # refused, or reset out of the backlog
                break
            writer.close()
            await writer.wait_closed()
        else:
            pytest.fail("the port stayed open")
        assert not stopping.done()
        slow.release.set()
        async with await asking as response:
            assert await response.text() == "done"
    await stopping


async def test_a_request_that_never_ends_does_not_hold_the_shutdown_for_ever() -> None:
    """It is cut off when its time is over."""
    slow, app = Slow(), application()
    app.router.add_get("/slow", slow.answer)
    server = Server(app, "127.0.0.1", 0, finish_s=0.1)
    await server.start()
    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(session.get(f"http://127.0.0.1:{server.port}/slow"))
        await slow.entered.wait()
        async with asyncio.timeout(3.0):
            await server.stop()
        with pytest.raises(aiohttp.ClientError):
            await asking


async def test_while_draining_requests_are_answered_and_readiness_fails() -> None:
    """And each answer asks the client to connect anew, so that kept connections move to other replicas."""
    health, app = Health(), application()
    health.add_routes(app)
    server = Server(app, "127.0.0.1", 0, health=health)
    await server.start()
    base = f"http://127.0.0.1:{server.port}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{base}/readyz") as response:
            assert response.status == 200
        stopping = asyncio.create_task(server.stop(drain_s=0.5))
        await asyncio.sleep(0)
        async with session.get(f"{base}/readyz") as response:
            assert response.status == 503
            assert "[-]shutdown" in await response.text()
            assert response.headers["Connection"] == "close"
        async with session.get(f"{base}/healthz") as response:
            assert response.status == 200
    await stopping


async def test_while_draining_the_server_closes_answered_connections_itself() -> None:
    """Also those of clients that would keep them."""
    health, app = Health(), application()
    health.add_routes(app)
    server = Server(app, "127.0.0.1", 0)
    await server.start()
    stopping = asyncio.create_task(server.stop(drain_s=30.0))
    await asyncio.sleep(0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
    async with asyncio.timeout(5.0):
        assert b"200 OK" in await reader.read()
    assert not stopping.done()
    writer.close()
    await writer.wait_closed()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping


async def test_bodies_up_to_the_limit_are_accepted() -> None:
    """Eight times what aiohttp takes by itself, and no more."""

    async def size(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    app = application()
    app.router.add_post("/", size)
    server = Server(app, "127.0.0.1", 0)
    await server.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        async with session.post("/", data=BytesIO(b"x" * BODY_LIMIT)) as response:
            assert await response.text() == str(BODY_LIMIT)
        async with session.post("/", data=BytesIO(b"x" * (BODY_LIMIT + 1))) as response:
            assert response.status == 413
    await server.stop()


@pytest.mark.parametrize(("listened", "asked"), [("::1", "::1"), ("::ffff:127.0.0.1", "127.0.0.1")])
async def test_whoever_listens_on_ipv6_is_reached_from_both_families(listened: str, asked: str) -> None:
    """The second address is one of IPv4, as `::` has them all."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    health, app = Health(), application()
    health.add_routes(app)
    server = Server(app, listened, 0)
    try:
        await server.start()
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        pytest.skip(f"this machine does not have the address {listened}")
    async with aiohttp.ClientSession() as session:
        async with session.get(
            URL.build(scheme="http", host=asked, port=server.port, path="/healthz")
        ) as response:
            assert response.status == 200
        await server.stop()


async def test_a_taken_port_of_ipv6_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = Server(application(), "::ffff:127.0.0.1", taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            await server.start()


async def test_a_taken_port_is_an_error_that_leaves_nothing_behind() -> None:
    """The caller sees the OSError; stopping what never started is harmless."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = Server(application(), "127.0.0.1", taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            await server.start()
        await server.stop()
    with pytest.raises(RuntimeError, match="not started"):
        _ = server.port


async def test_the_registry_is_shown_in_the_format_asked_for() -> None:
    """Prometheus text by default, OpenMetrics for a scraper that names it."""
    registry, app = CollectorRegistry(), application()
    Counter("things", "Things.", registry=registry).inc(3)
    metrics.add_route(app, registry)
    server = Server(app, "127.0.0.1", 0)
    await server.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        async with session.get("/metrics") as response:
            assert "things_total 3.0" in await response.text()
            assert response.headers["Content-Type"].startswith("text/plain")
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        async with session.get("/metrics", headers=accept) as response:
            assert (await response.text()).endswith("# EOF\n")
    await server.stop()
