"""Whoever has asked what is served keeps its connection; all others make room for it."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import pytest
from aiohttp import web

from kube import doors
from kube.handshakes import Turns
from kube.serving import Server, application
from tests.unit.kube.ports import opened

SERVED = "/served"
STRANGERS = ("127.0.0.2", "127.0.0.3")
PLACES = 10
"""Stands for the thousand of a real port."""

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    constructor = doors.Doors.__init__
    assert constructor.__kwdefaults__ is not None
    monkeypatch.setitem(constructor.__kwdefaults__, "most", PLACES)
    monkeypatch.setitem(constructor.__kwdefaults__, "of_one", PLACES - 2)


class Port:
    """A server that answers POST at one path, with the status that the client asks for, and at another when told."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.entered = asyncio.Event()
        app = application()
        app.router.add_post(SERVED, self._answer)
        app.router.add_post("/known", self._known)
        self.server = Server(app, "127.0.0.1", 0)

    async def _answer(self, request: web.Request) -> web.Response:
        return web.Response(status=int(request.query.get("status", "200")))

    async def _known(self, request: web.Request) -> web.Response:
        doors.prove(request)
        self.entered.set()
        await self.release.wait()
        return web.Response()

    async def connect(self, address: str = "127.0.0.1") -> Line:
        return await asyncio.open_connection("127.0.0.1", self.server.port, local_addr=(address, 0))

    async def fill(self, path: str) -> list[Line]:
        """Two addresses take all places, one request on each."""
        lines = [await self.connect(STRANGERS[number % 2]) for number in range(PLACES)]
        for line in lines:
            await ask(line, path)
        return lines


def port() -> AbstractAsyncContextManager[Port]:
    return opened(Port())


@contextmanager
def closing(*lines: Line) -> Iterator[None]:
    try:
        yield
    finally:
        for _, writer in lines:
            writer.close()


def send(line: Line, path: str, method: str = "POST") -> None:
    line[1].write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())


async def answer(line: Line) -> tuple[int, bool]:
    """The status of an answer, and whether the client is told that the connection ends with it."""
    async with asyncio.timeout(10.0):
        head = (await line[0].readuntil(b"\r\n\r\n")).decode()
        length = next(
            (row.split(":")[1] for row in head.splitlines() if row.startswith("Content-Length")), "0"
        )
        await line[0].readexactly(int(length))
    return int(head.split()[1]), "Connection: close" in head


async def ask(line: Line, path: str, method: str = "POST") -> tuple[int, bool]:
    send(line, path, method)
    return await answer(line)


async def ended(line: Line) -> bool:
    try:
        async with asyncio.timeout(10.0):
            return await line[0].read() == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/", "POST", 404), ("/else", "GET", 404), (SERVED, "GET", 405)]
    + [(f"{SERVED}?status={status}", "POST", status) for status in (400, 403, 408, 413, 415)],
)
async def test_whoever_asks_what_is_not_served_is_closed_after_its_answer(
    path: str, method: str, status: int
) -> None:
    async with port() as opened:
        line = await opened.connect()
        with closing(line):
            assert await ask(line, path, method) == (status, True)
            assert await ended(line)


async def test_a_proven_connection_is_kept_whatever_it_asks_later() -> None:
    async with port() as opened:
        line = await opened.connect()
        with closing(line):
            for path, status in ((SERVED, 200), ("/", 404), (f"{SERVED}?status=413", 413), (SERVED, 200)):
                assert await ask(line, path) == (status, False)


async def test_who_is_sent_elsewhere_is_a_stranger_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection stays, and its address gets no more handshakes than those of others who were served nothing."""
    known: list[str] = []
    monkeypatch.setattr(Turns, "know", lambda _, address: known.append(address))
    async with port() as opened:
        sent_on, served = await opened.connect(STRANGERS[0]), await opened.connect(STRANGERS[1])
        with closing(sent_on, served):
            for _ in range(2):
                assert await ask(sent_on, f"{SERVED}?status=308") == (308, False)
            assert await ask(served, SERVED) == (200, False)
            assert known == [STRANGERS[1]]


async def test_an_error_of_ours_closes_nobody() -> None:
    async with port() as opened:
        line = await opened.connect()
        with closing(line):
            for _ in range(2):
                assert await ask(line, f"{SERVED}?status=503") == (503, False)


@pytest.mark.parametrize("path", ["/", f"{SERVED}?status=503", SERVED])
async def test_a_port_that_two_addresses_have_filled_lets_a_third_in(path: str) -> None:
    """With connections that are closed, that wait, and even with proven ones."""
    async with port() as opened:
        strangers = await opened.fill(path)
        line = await opened.connect()
        with closing(line, *strangers):
            assert await ask(line, SERVED) == (200, False)


async def test_a_proven_connection_outlasts_any_number_of_others() -> None:
    async with port() as opened:
        kept = [await opened.connect() for _ in range(5)]
        for line in kept:
            await ask(line, SERVED)
        strangers = [await opened.connect(STRANGERS[number % 2]) for number in range(3 * PLACES)]
        with closing(*kept, *strangers):
            for line in kept:
                assert await ask(line, SERVED) == (200, False)
            assert await ended(strangers[0])


async def test_among_proven_ones_the_one_goes_that_was_answered_the_longest_ago() -> None:
    async with port() as opened:
        lines = await opened.fill(SERVED)
        await ask(lines[0], SERVED)
        newcomer = await opened.connect()
        with closing(newcomer, *lines):
            assert await ask(newcomer, SERVED) == (200, False)
            gone = [number for number, line in enumerate(lines) if line[0].at_eof() or line[0].exception()]
            assert gone in ([1], [2])
            assert await ask(lines[0], SERVED) == (200, False)


async def test_a_request_that_is_known_to_be_rightful_keeps_its_place_before_it_is_answered() -> None:
    async with port() as opened:
        line = await opened.connect()
        send(line, "/known")
        await opened.entered.wait()
        strangers = [await opened.connect(STRANGERS[0]) for _ in range(2 * PLACES)]
        with closing(line, *strangers):
            assert await ended(strangers[0])
            opened.release.set()
            assert await answer(line) == (200, False)
