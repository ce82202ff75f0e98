"""A list of earlier events that fails is begun anew as long as that may help, and what it tells is not said again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from kube import errors
from kube.event_store import PAGE, PAGE_S, EventStore, Past
from kube.listing import Page
from tests.fakes.apiserver import background
from tests.unit.kube.event_sink import Sink, pods, recorder_of, stored


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("fails", "within_s"), [(errors.Forbidden(403), 0.0), (errors.ServerError(500), 60.0)]
)
async def test_without_the_list_it_goes_on(fails: errors.KubeError, within_s: float) -> None:
    """Rights are not waited for."""
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_fails = [stored(0)], lambda: fails
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()):
        await recorder.recall(past.append)
        assert past == []
        assert within_s / 2 <= asyncio.get_running_loop().time() <= within_s
        recorder.emit(pods(1)[0], "Warning", "R", "note", "A")
        await asyncio.sleep(1)
    assert sink.about == ["p0"]
    assert len(sink.selectors) <= 8


@pytest.mark.looptime
@pytest.mark.parametrize(
    "fails",
    [
        errors.ConnectionFailed("cut"),
        errors.ServerError(503),
        errors.Throttled(429, retry_after=7.0),
        errors.Gone(410),
        errors.Unauthorized(401),
    ],
)
async def test_a_list_that_fails_now_and_then_is_begun_anew_and_nothing_is_said_again(
    fails: errors.KubeError,
) -> None:
    """As it happens when the leader changes because its API server was restarted."""
    sink, past, answers = Sink(), list[Past](), iter([fails, None, fails, None])
    sink.stored, sink.list_fails = [stored(number) for number in range(700)], lambda: next(answers)

    async def fails_once(_: float) -> None:
        sink.list_stops = None
        raise fails

    sink.list_stops = fails_once
    recorder, _ = recorder_of(sink)
    async with background(recorder.run()), background(recorder.recall(past.append)):
        await asyncio.sleep(0)
        for pod in pods(701):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(60)
    assert {each.regarding.name for each in past} == {f"p{number}" for number in range(700)}
    assert (sink.about, sink.patched) == (["p700"], [])


@pytest.mark.looptime
async def test_a_list_that_comes_further_each_time_is_tried_on_and_one_that_does_not_for_a_minute() -> None:
    sink, told, failed = Sink(), set[str](), 0
    sink.stored, sink.list_s = [stored(number) for number in range(5000)], 2.0

    async def fails_one_page_later(_: float) -> None:
        nonlocal failed
        page = (len(told) - 1) // PAGE
        if page == min(failed, 4):
            failed += 1
            raise errors.ServerError(500)

    sink.list_stops = fails_one_page_later
    recorder, _ = recorder_of(sink)
    await recorder.recall(lambda past: told.add(past.regarding.name))
    assert len(told) == 5 * PAGE
    assert 60 < asyncio.get_running_loop().time() < 200


@pytest.mark.looptime
async def test_after_its_time_no_page_is_taken_though_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()

    async def at_once(*_: Any, **__: Any) -> AsyncGenerator[Page]:
        yield Page([stored(0)], "1")

    monkeypatch.setattr(sink, "list", at_once)
    with pytest.raises(errors.ConnectionFailed, match="not all within"):
        _ = [each async for each in EventStore(sink, "c", "i").pages(asyncio.get_running_loop().time())]


async def _fails(_: float) -> None:
    raise errors.ServerError(500)


async def _times_out(timeout_s: float) -> None:
    await asyncio.sleep(timeout_s)
    raise errors.ConnectionFailed("timed out")


async def _hangs(_: float) -> None:
    await asyncio.Event().wait()


@pytest.mark.looptime
@pytest.mark.parametrize("stops", [_fails, _times_out, _hangs])
async def test_with_a_part_of_the_list_it_goes_on_in_bounded_time(
    stops: Callable[[float], Awaitable[None]],
) -> None:
    """What was read is not said again; the rest is, and what has come meanwhile is said then."""
    sink, past = Sink(), list[Past]()
    sink.stored, sink.list_stops = [stored(number) for number in range(2000)], stops
    recorder, _ = recorder_of(sink)
    known, unread = pods(2000)[0], pods(2000)[1999]
    async with background(recorder.run()), background(recorder.recall(past.append)):
        await asyncio.sleep(0)
        for pod in (known, unread):
            recorder.emit(pod, "Warning", "R", "note", "A")
        await asyncio.sleep(60 + 2 * PAGE_S)
    assert len({each.name for each in past}) == PAGE
    assert sink.about == ["p1999"]
