import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kube import runtime


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The pace of garbage collections, for the whole process, is afterwards what it was."""
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_for_a_clean_end(number: signal.Signals) -> None:
    """`main` sees it and ends by itself."""

    async def main(stop: asyncio.Event) -> int:
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 5)
        return 7

    assert runtime.run(main) == 7


def test_the_loop_is_pythons_own() -> None:
    """Under another one the process is aborted when TLS connections are given up at a bad moment; `runtime.run` says more."""

    async def main(_stop: asyncio.Event) -> int:
        return int(isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop))

    assert runtime.run(main) == 1


def test_a_crash_in_native_code_says_where() -> None:
    """No Python handler runs any more, and the exit status alone helps nobody."""
    crashes = (
        "import os\n"
        "from kube import runtime\n"
        "async def crashes(stop):\n"
        "    os.abort()\n"
        "runtime.run(crashes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", crashes], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGABRT
    assert "Fatal Python error" in done.stderr
    assert "in crashes" in done.stderr


def test_the_second_signal_ends_what_does_not_end() -> None:
    """Cancelled, whatever it was waiting for."""

    async def main(stop: asyncio.Event) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
        return 0

    with pytest.raises(asyncio.CancelledError):
        runtime.run(main)


async def test_runnables_are_cancelled_and_awaited_at_the_stop() -> None:
    """Each gets to clean up before run_until returns; one that ended earlier is no matter."""
    ended = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def short() -> None:
        ended.append("short")

    stop = asyncio.Event()
    running = asyncio.create_task(runtime.run_until(stop, forever, forever, short))
    await asyncio.sleep(0.01)
    assert not running.done()
    stop.set()
    await running
    assert ended == ["short", "cleaned up", "cleaned up"]


async def test_a_failing_runnable_ends_the_others() -> None:
    """A process without one of its parts must not look alive."""
    cancelled = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await runtime.run_until(asyncio.Event(), forever, fail)
    assert caught.group_contains(ZeroDivisionError)
    assert cancelled.is_set()


async def test_what_failed_is_logged_before_the_others_have_ended(caplog: pytest.LogCaptureFixture) -> None:
    """Who is killed while it ends in order has said why."""
    logged: list[str] = []

    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            logged.extend(str(record.exc_info) for record in caplog.records if record.levelname == "CRITICAL")

    async def fail() -> None:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ExceptionGroup):
        await runtime.run_until(asyncio.Event(), slow_to_end, fail)
    assert [("by zero" in text) for text in logged] == [True]


class _GivenUpError(Exception):
    """What one of two raises."""


@pytest.mark.parametrize("order", [1, -1])
async def test_of_two_the_one_that_ends_ends_the_other_and_its_error_comes_out_as_it_is(order: int) -> None:
    ended = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise _GivenUpError

    async def short() -> None:
        await asyncio.sleep(0)

    first, second = (forever(), fails())[::order]
    with pytest.raises(_GivenUpError):
        await runtime.run_both(first, second)
    first, second = (forever(), short())[::order]
    await runtime.run_both(first, second)
    task = asyncio.create_task(runtime.run_both(forever(), forever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"] * 4
