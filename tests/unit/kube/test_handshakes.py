"""Connections that never get through their TLS handshake: they take places as all others do, and give way as all others do."""

import asyncio
import gc
import ssl
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from kube import doors, pki, threshold
from kube.doors import Doors
from kube.handshakes import STRANGERS_PER_S as STRANGERS
from kube.handshakes import Turns
from kube.metrics import Metrics
from kube.serving import Server, application
from kube.tls import ServingCertificate, client_context
from tests.unit.kube.ports import opened
from tests.unit.kube.test_doors import SOON_S, is_closed, until

STRANGERS_PER_S = round(STRANGERS)
PLACES = 6
"""Stands for the thousand of a real port."""
OTHERS = ("127.0.0.2", "127.0.0.3")
RECORD = b"\x16\x03\x01\x40\x00"
HELLO = RECORD + b"\x01\x00\xff\xff\x03\x03"
"""How a ClientHello of 64 KiB begins, in records of 16 KiB."""

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Port:
    """A server that answers `/`, with a certificate of its own, and its doors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turns: Turns | None = None) -> None:
        bundle = pki.renewed(None, ["localhost"], datetime.now(UTC))
        self.tls = client_context(bundle.ca_certificates)
        serving = ServingCertificate(Metrics(CollectorRegistry()))
        serving.load(bundle.leaf.certificate, bundle.leaf.key)
        made: list[Doors] = []
        constructor = Doors.__init__

        def remembered(doors_: Doors, inner: doors.Factory, **limits: object) -> None:
            made.append(doors_)
            limits = {**limits, "most": PLACES, "of_one": PLACES - 2, "turns": turns}
            constructor(doors_, inner, **limits)  # type: ignore[arg-type]

        monkeypatch.setattr(Doors, "__init__", remembered)
        app = application()
        app.router.add_get("/", self._answer)
        self.server = Server(app, "127.0.0.1", 0, serving.context)
        self._made = made

    async def _answer(self, _request: web.Request) -> web.Response:
        return web.Response(text="here")

    @property
    def open(self) -> int:
        return self._made[0].open

    async def connect(self, address: str, said: bytes = b"") -> Line:
        line = await asyncio.open_connection("127.0.0.1", self.server.port, local_addr=(address, 0))
        line[1].write(said)
        return line

    async def ask(self, session: aiohttp.ClientSession) -> str:
        async with session.get(f"https://localhost:{self.server.port}/", ssl=self.tls) as response:
            return await response.text()


def gone(lines: list[Line]) -> list[int]:
    """The numbers of those that the server has closed."""
    return [number for number, (reader, _) in enumerate(lines) if reader.at_eof() or reader.exception()]


def port(monkeypatch: pytest.MonkeyPatch, turns: Turns | None = None) -> AbstractAsyncContextManager[Port]:
    return opened(Port(monkeypatch, turns))


@pytest.mark.parametrize("said", [b"", b"\x16", HELLO, HELLO + bytes(2**14 - 6) + RECORD + bytes(2**14)])
async def test_they_take_no_more_places_than_there_are_and_the_oldest_gives_way(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    async with port(monkeypatch) as opened:
        lines = [await opened.connect(OTHERS[number % 2], said) for number in range(3 * PLACES)]
        await until(lambda: len(gone(lines)) == 2 * PLACES)
        assert 0 in gone(lines)
        assert opened.open == PLACES
        for _, writer in lines:
            writer.close()
        await until(lambda: opened.open == 0)


async def test_one_address_takes_the_places_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with port(monkeypatch) as opened:
        quiet = await opened.connect(OTHERS[1])
        lines = [await opened.connect(OTHERS[0]) for _ in range(3 * PLACES)]
        for reader, _ in lines[: -(PLACES - 2)]:
            assert await is_closed(reader)
        assert opened.open == PLACES - 1
        assert not quiet[0].at_eof()
        for _, writer in (quiet, *lines):
            writer.close()


async def test_who_does_speak_tls_gets_in_and_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice over one connection, with a port full of others before and between."""
    async with port(monkeypatch) as opened, aiohttp.ClientSession() as session:
        for _ in range(2):
            lines = [await opened.connect(OTHERS[number % 2]) for number in range(2 * PLACES)]
            assert await opened.ask(session) == "here"
            for _, writer in lines:
                writer.close()
        await until(lambda: opened.open == 1)


async def test_what_has_ended_leaves_nothing_to_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which comes after minutes; until then whoever opens and closes connections would fill the memory."""
    gc.collect()
    gc.disable()
    try:
        async with port(monkeypatch) as opened:
            for _ in range(20):
                async with aiohttp.ClientSession() as session:
                    assert await opened.ask(session) == "here"
            await until(lambda: opened.open == 0)
            await until(lambda: not left_over())
    finally:
        gc.enable()


def left_over() -> list[object]:
    return [each for each in gc.get_objects() if isinstance(each, doors._Door | threshold.Threshold)]


async def test_a_handshake_that_was_given_up_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold, "HANDSHAKE_S", 0.2)
    async with port(monkeypatch) as opened:
        lines = [await opened.connect(OTHERS[0], HELLO) for _ in range(3)]
        await until(lambda: opened.open == 3)
        for reader, _ in lines:
            assert await is_closed(reader)
        assert opened.open == 0
        for _, writer in lines:
            writer.close()


async def test_strangers_wait_for_their_turn_and_who_was_served_before_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those who wait take places, as all others do, and are not listened to; nobody waits any more when the port is closed."""
    never = Turns(strangers_per_s=0.001)
    never.know("127.0.0.1")
    async with port(monkeypatch, never) as opened:
        lines = [await opened.connect(OTHERS[0], b"no handshake") for _ in range(PLACES - 2)]
        for _ in range(5):
            async with aiohttp.ClientSession() as anew, asyncio.timeout(SOON_S):
                assert await opened.ask(anew) == "here"
        assert opened.open >= PLACES - 2
        assert gone(lines) == []
    for reader, writer in lines:
        assert await is_closed(reader)
        writer.close()


async def test_a_flood_of_strangers_gets_the_handshakes_of_its_pace_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each costs the process a signature, and whoever floods it nothing."""
    begun: list[float] = []
    constructor = threshold._Tls.__init__

    def counted(tls: threshold._Tls, door: doors._Door, context: ssl.SSLContext) -> None:
        begun.append(asyncio.get_running_loop().time())
        constructor(tls, door, context)

    monkeypatch.setattr(threshold._Tls, "__init__", counted)
    monkeypatch.setitem(globals(), "PLACES", 10 * STRANGERS_PER_S)
    async with port(monkeypatch, Turns()) as opened:
        lines = [await opened.connect(OTHERS[number % 2], HELLO) for number in range(3 * STRANGERS_PER_S)]
        await until(lambda: len(begun) > STRANGERS_PER_S)
        assert len(begun) <= STRANGERS_PER_S * (1 + begun[-1] - begun[0]) + 1
        assert opened.open == len(lines)
    for _, writer in lines:
        writer.close()
