"""Whoever asks without end, on whatever number of connections, keeps nobody else from being heard."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from itertools import pairwise

from aiohttp import web

from kube import doors, hearing
from kube.hearing import AT_ONCE, Hearing
from kube.serving import Server, _Site, application
from tests.unit.kube.ports import opened
from tests.unit.kube.test_doors import listening, until

ATTACKER, HONEST = "127.0.0.2", "127.0.0.3"
QUESTION = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_in_one_turn_of_the_loop_a_few_are_heard_and_then_those_who_waited() -> None:
    turns, heard, seen = Hearing(), list[int](), [0]
    for number in range(95):
        turns.ask("a", lambda number=number: heard.append(number))  # type: ignore[misc]
    assert len(heard) == AT_ONCE
    while len(heard) < 95:
        seen.append(len(heard))
        await asyncio.sleep(0)
    assert max(after - before for before, after in pairwise(seen)) <= AT_ONCE
    assert heard == [*range(95)]


async def test_each_address_has_its_turn() -> None:
    turns, heard = Hearing(), list[str]()
    for _ in range(95):
        turns.ask("a", hear("a", heard))
    turns.ask("b", hear("b", heard))
    await until(lambda: len(heard) == 96)
    assert heard.index("b") <= AT_ONCE + 1


async def test_who_has_gone_is_not_heard() -> None:
    turns, heard = Hearing(1), list[str]()
    for name in "abc":
        asked = hear(name, heard)
        turns.ask("x", asked)
        turns.take_back("x", asked)
    turns.take_back("nobody", print)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    turns.ask("x", hear("d", heard))
    assert heard == ["a", "d"]


async def test_when_nobody_has_asked_for_a_while_one_is_heard_at_once() -> None:
    turns, heard = Hearing(2), list[str]()
    for round_ in range(3):
        for name in "ab":
            turns.ask("x", hear(name, heard))
        assert len(heard) == 2 * (round_ + 1)
        await asyncio.sleep(0)


def hear(name: str, heard: list[str]) -> Callable[[], None]:
    return lambda: heard.append(name)


def test_all_ports_of_a_loop_share_one_and_no_two_loops_do() -> None:
    async def both() -> tuple[Hearing, Hearing]:
        return hearing.shared(), hearing.shared()

    first, second = asyncio.run(both()), asyncio.run(both())
    assert first[0] is first[1]
    assert first[0] is not second[0]


class Port:
    """Counts what it answers, by the address that has asked. At `/known` the asker is somebody who is known."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        app = application()
        app.router.add_get("/", self._answer)
        app.router.add_get("/known", self._known)
        self.server = Server(app, "127.0.0.1", 0)

    async def _answer(self, request: web.Request) -> web.Response:
        self.answered.append(str(request.remote))
        return web.Response(text="x")

    async def _known(self, request: web.Request) -> web.Response:
        doors.prove(request)
        return await self._answer(request)

    async def connect(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, local_addr=(address, 0))

    @property
    def entrance(self) -> doors.Doors:
        """Through which all come."""
        assert self.server._runner is not None
        (site,) = self.server._runner.sites
        assert isinstance(site, _Site)
        assert site._entrance is not None
        return site._entrance

    async def ask_on(self, address: str) -> None:
        """Asks, reads the answer, and asks again."""
        reader, writer = await self.connect(address)
        with closing(writer):
            while True:
                writer.write(QUESTION)
                await reader.readuntil(b"\r\n\r\nx")


def port() -> AbstractAsyncContextManager[Port]:
    return opened(Port())


async def test_between_a_question_and_its_answer_few_others_are_answered_however_many_ask() -> None:
    async with port() as opened, asyncio.TaskGroup() as tasks:
        flood = [tasks.create_task(opened.ask_on(ATTACKER)) for _ in range(120)]
        await until(lambda: len(opened.answered) > 1000)
        reader, writer = await opened.connect(HONEST)
        with closing(writer):
            for _ in range(5):
                before = len(opened.answered)
                writer.write(QUESTION)
                await reader.readuntil(b"\r\n\r\nx")
                assert opened.answered[before:].count(ATTACKER) < 8 * AT_ONCE
        for one in flood:
            one.cancel()


async def test_who_sends_many_questions_at_a_time_is_answered_one_and_has_to_come_again() -> None:
    """Else a turn would be worth as many as there is room for."""
    async with port() as opened:
        reader, writer = await opened.connect(ATTACKER)
        with closing(writer):
            writer.write(QUESTION)
            await reader.readuntil(b"\r\n\r\nx")
            writer.write(QUESTION * 30)
            assert b"connection: close" in (await reader.read()).lower()
        assert len(opened.answered) == 2


class Deaf(Hearing):
    """Hears nobody until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Callable[[], None]] = []

    def ask(self, address: str, hear: Callable[[], None]) -> None:
        self.asked.append(hear)


async def test_of_those_who_wait_no_more_is_read_than_two_pieces() -> None:
    async with listening() as world:
        world.doors.hearing = deaf = Deaf()
        _, writer = await world.connect()
        with closing(writer):
            writer.write(b"x" * 2**20)
            await until(lambda: len(deaf.asked) == 1)
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert (len(deaf.asked), world.inner[0].data) == (1, b"")
            deaf.asked.pop()()
            assert 0 < len(world.inner[0].data) <= 2 * doors.READ
            await until(lambda: len(deaf.asked) == 1)
            world.doors.hearing = hearing.shared()
            deaf.asked.pop()()
            await until(lambda: len(world.inner[0].data) == 2**20)
        await until(lambda: world.inner[0].lost == 1)


async def test_whoever_is_known_waits_for_nobody() -> None:
    async with port() as opened:
        reader, writer = await opened.connect(HONEST)
        with closing(writer):
            writer.write(QUESTION.replace(b"/ ", b"/known "))
            await reader.readuntil(b"\r\n\r\nx")
            opened.entrance.hearing = deaf = Deaf()
            writer.write(QUESTION)
            await reader.readuntil(b"\r\n\r\nx")
            assert deaf.asked == []
            stranger_reader, stranger = await opened.connect(ATTACKER)
            with closing(stranger):
                stranger.write(QUESTION)
                await until(lambda: len(deaf.asked) == 1)
                deaf.asked.pop()()
                await stranger_reader.readuntil(b"\r\n\r\nx")
