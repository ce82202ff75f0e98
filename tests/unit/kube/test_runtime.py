import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kube import runtime


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


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """As in a process of ours that begins; afterwards what stays is set aside again, as tests/conftest.py has it."""
    threshold = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.set_threshold(*threshold)
    gc.freeze()


def test_settled_objects_are_left_out_of_collections() -> None:
    """What exists is frozen."""
    runtime.settle_gc()
    assert gc.get_freeze_count() > 1000


def test_a_process_collects_garbage_seldom() -> None:
    """From before the first list on: that is when the most short-lived objects come."""

    async def main(_stop: asyncio.Event) -> int:
        return gc.get_threshold()[0]

    assert runtime.run(main) >= 25_000


def test_no_collection_but_a_full_one_looks_at_more_than_a_pause_allows() -> None:
    """A hundred thousand objects take 25 ms, and twice that on a busy machine."""

    async def main(_stop: asyncio.Event) -> int:
        young, middle, _ = gc.get_threshold()
        return young * (middle + 1)

    assert runtime.run(main) <= 50_000


@pytest.fixture
def looked_at() -> Iterator[list[int]]:
    """The generations of all collections."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_young_objects_are_looked_at_by_time_and_not_only_by_number(looked_at: list[int]) -> None:
    """Where ten thousand pods are booked anew as much goes as comes, and Python counts the difference."""
    now = 1_000_000.0
    collector = runtime._Collector(lambda: now)
    del looked_at[:]
    for _ in range(85):
        now += 0.01
        collector.between_rounds()
    assert looked_at == [0, 1] * 4


def test_young_objects_are_looked_at_between_two_rounds_and_not_while_nothing_happens(
    looked_at: list[int],
) -> None:
    """A process that is woken ten times a second has no rest, nor has the node that it runs on."""
    counts: list[int] = []

    async def main(_stop: asyncio.Event) -> int:
        del looked_at[:]
        await asyncio.sleep(0.6)
        counts.append(len(looked_at))
        for _ in range(30):
            await asyncio.sleep(0.02)
        counts.append(len(looked_at))
        return 0

    assert runtime.run(main) == 0
    idle, busy = counts
    assert idle <= 1
    assert busy >= 4


@pytest.mark.looptime
async def test_what_is_listed_is_set_aside_while_the_list_goes_on() -> None:
    """Else a collection in the middle of it, or the one in the end, would look at everything listed so far."""
    kept: list[list[int]] = []
    collections: list[int] = []

    async def listed() -> None:
        for _ in range(5):
            kept.extend([] for _ in range(1000))
            await asyncio.sleep(0.2)
            collections.append(len(gc.get_objects()))

    before = gc.get_freeze_count()
    await runtime.filled(listed())
    assert gc.get_freeze_count() - before >= len(kept)
    # The collector sees no more than what came last, not what has been listed so far.
    assert max(collections) < 1000


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
