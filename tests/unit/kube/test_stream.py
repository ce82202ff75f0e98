"""An answer that goes on and on: how long silence is borne, and what looking after it costs."""

import asyncio
from typing import Any, Self

import aiohttp
import pytest

from kube.stream import Stream

pytestmark = pytest.mark.looptime

LIMIT_S = 10.0
FOREVER_S = 1000 * LIMIT_S


class Answer:
    """Stands for an answer, its body and its connection. A piece comes so many seconds after it began; then there is silence."""

    def __init__(self, *pieces: tuple[float, bytes], cut_s: float = FOREVER_S) -> None:
        self._pieces = [*pieces]
        self._cut_s = cut_s
        self._broken = asyncio.Event()
        self.closed = False

    @property
    def content(self) -> Self:
        return self

    @property
    def connection(self) -> Self | None:
        return None if self.closed else self

    @property
    def transport(self) -> Self:
        return self

    @property
    def aborted(self) -> bool:
        return self._broken.is_set()

    def abort(self) -> None:
        self._broken.set()

    def close(self) -> None:
        self.closed = True

    async def readany(self) -> bytes:
        """As soon as the next one has come, or at once if it has."""
        at_s, piece = self._pieces.pop(0) if self._pieces else (self._cut_s, b"")
        left_s = at_s - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                await self._broken.wait()
        except TimeoutError:
            if not piece:
                raise aiohttp.ClientPayloadError("cut off") from None
            return piece
        raise aiohttp.ClientConnectionError("aborted")


def over(answer: Answer) -> Stream:
    stands_for: Any = answer
    return Stream(stands_for, LIMIT_S)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_silence_ends_it_after_the_limit_and_is_no_failure() -> None:
    with over(answer := Answer((3.0, b"a"))) as stream:
        assert await stream.next_piece() == b"a"
        assert not stream.silent
        assert await stream.next_piece() == b""
        assert now() == pytest.approx(3.0 + LIMIT_S)
        assert (stream.silent, answer.aborted) == (True, True)
    assert answer.closed


async def test_whoever_says_something_in_time_is_heard_for_as_long_as_he_likes() -> None:
    """However little: the limit is one of silence, and begins anew with each piece."""
    pieces = [(number * (LIMIT_S - 0.5), b"%d" % number) for number in range(1, 9)]
    with over(Answer(*pieces)) as stream:
        assert [await stream.next_piece() for _ in pieces] == [piece for _, piece in pieces]
        assert not stream.silent


async def test_while_nobody_waits_it_is_not_the_server_that_is_silent() -> None:
    """What has come meanwhile is there; and from then on the server has as long as ever."""
    with over(Answer((1.0, b"a"), (2.0, b"b"))) as stream:
        assert await stream.next_piece() == b"a"
        await asyncio.sleep(3.3 * LIMIT_S)
        assert await stream.next_piece() == b"b"
        asked_at = now()
        assert await stream.next_piece() == b""
        assert now() - asked_at == pytest.approx(LIMIT_S)


async def test_one_that_breaks_off_fails() -> None:
    with over(answer := Answer((1.0, b"a"), cut_s=2.0)) as stream:
        assert await stream.next_piece() == b"a"
        with pytest.raises(aiohttp.ClientPayloadError):
            await stream.next_piece()
    assert (stream.silent, answer.aborted, answer.closed) == (False, True, True)


@pytest.mark.parametrize("ends", [ValueError, asyncio.CancelledError])
async def test_it_ends_with_its_connection_whatever_becomes_of_whoever_reads_it(
    ends: type[BaseException],
) -> None:
    answer = Answer((1.0, b"a"))

    async def read() -> None:
        with over(answer) as stream:
            assert await stream.next_piece() == b"a"
            raise ends

    with pytest.raises(ends):
        await read()
    assert (answer.aborted, answer.closed) == (True, True)


async def test_many_pieces_take_one_timer_and_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), 0
    call_later = loop.call_later

    def counted(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
        nonlocal timers
        timers += 1
        return call_later(*arguments, **options)

    monkeypatch.setattr(loop, "call_later", counted)
    with over(Answer(*[(0.0, b"x")] * 1000)) as stream:
        for _ in range(1000):
            await stream.next_piece()
        assert timers == 1
    await asyncio.sleep(3 * LIMIT_S)
    assert timers == 2, "the one of this sleep"
