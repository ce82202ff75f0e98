"""The rounds of an event loop: who follows them is called in each, and not while nothing happens."""

import asyncio
import selectors
import socket
from contextlib import closing

import pytest

from kube import stalls
from kube.stalls import Loop, Rounds, of_running_loop


class _Clock:
    """Stands still but where it is moved on."""

    def __init__(self) -> None:
        self.now = 1.0

    def monotonic(self) -> float:
        return self.now


def test_a_round_begins_with_what_came_and_ends_before_the_next_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it leaves to be run at once belongs to it."""
    monkeypatch.setattr(stalls, "time", _Clock())
    called: list[str] = []

    def begins(timeout_s: float | None, something_came: bool) -> None:
        called.append(f"begins {timeout_s is None} {something_came}")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        with loop.rounds.calling(begins=begins, ends=lambda: called.append("ends")):
            called.append("work")
            loop.call_soon(called.append, "soon")
            await asyncio.sleep(0.02)
            called.append("over")
            loop.call_soon(called.append, "not followed")
        await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
    assert called[:4] == ["work", "soon", "ends", "begins False False"]
    assert called[-3:] == ["begins False False", "over", "not followed"]
    calls = [call for call in called if call.startswith(("begins", "ends"))]
    assert calls == ["ends", "begins False False"] * (len(calls) // 2)


def test_whoever_comes_first_is_heard_while_the_loop_sleeps() -> None:
    """As with any other selector: readers and threads wake it."""

    async def main() -> str:
        return await asyncio.wait_for(asyncio.to_thread(lambda: "from a thread"), 5)

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(main()) == "from a thread"


def test_what_comes_is_looked_for_a_millisecond_after_the_last_look_however_much_there_is_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = _Clock()
    monkeypatch.setattr(stalls, "time", clock)
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs), closing(Rounds()) as rounds:
        rounds.register(ours, selectors.EVENT_READ)
        assert rounds.select(0) == []
        theirs.send(b"x")
        assert rounds.select(0) == []
        clock.now += 0.0011
        assert [key.fileobj for key, _ in rounds.select(0)] == [ours]
        assert rounds.select(0) == [], "that was a look"
        assert [key.fileobj for key, _ in rounds.select(0.001)] == [ours], "nothing else is to be run"
        assert [key.fileobj for key, _ in rounds.select(None)] == [ours]


def test_who_leaves_something_to_be_run_again_and_again_keeps_nobody_from_being_heard() -> None:
    async def main() -> str:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()

        def again() -> None:
            if not heard.is_set():
                loop.call_soon(again)

        again()
        await asyncio.to_thread(loop.call_soon_threadsafe, heard.set)
        async with asyncio.timeout(5):
            await heard.wait()
        return "heard"

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(main()) == "heard"


async def test_a_loop_of_another_make_has_none_to_follow() -> None:
    assert of_running_loop() is None
