"""The frame of a process: the event loop, the signals that end it, and the garbage collector's pace."""

import asyncio
import faulthandler
import gc
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from kube import stalls

_LOG = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_SET_ASIDE_S = 0.1
"""While caches are filled no collection looks at more than came in this time."""

_GC_THRESHOLDS = (25_000, 1, 2**31 - 1)
"""A page of raw objects holds tens of thousands of containers that live for milliseconds. With Python's own 700 the
collector walks through them again and again: a list costs two to three times as much. What survives is walked through once
more soon: what one hostile object was read into waited to be walked through in one go with that of the next four.

Never a full collection by itself, it comes in the middle of work and takes as long as all that has survived: see `_Collector`.
The last number is the highest that Python takes, for 0 would not mean never. (3.14.0 to 3.14.4 ignore it and have none either.)"""

_COLLECT_S = 0.05
"""Young objects are looked at this often, whatever the thresholds say. Python counts what comes less what goes: where ten
thousand pods are booked anew, as much goes as comes, and a collection that waits for the count finds a hundred thousand.
Where memory is slow thirty thousand that live, and the strings that they name all over it, take 30 ms: a tenth of a second's."""
_MIDDLE_EVERY = 2
"""Every so many times also what survived the times before."""
_FULL_AFTER_S = 0.004
"""A full collection is due when the middle ones since the last have taken so long in all. Each old object was walked through by one
of these, just after it was made; later that takes up to three times as long where memory is slow. What the last full one took comes
to it if nothing was set aside then. Twice as long, and what hostile pods were read into took 30 to 40 ms, after a slice of work."""
_LONG_S = 0.004
"""After a full collection that took longer what survived is set aside, so that the next one is short again. Never after a short one:
what lives when it is set aside and is a cycle of garbage later is not freed any more. So that has to be rare: once for some
five thousand pods that are made anew, and not each second. Where most was garbage the next one is short without that."""
_FEW = 2_000
"""No full collection is long for so much garbage: it has gone through some fifty thousand objects. To count those that live, in
the list that Python makes of them, takes a quarter of the time once more."""


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Runs `main` on a new event loop and returns what it returns.

    The event that it is given is set by the first SIGTERM or SIGINT, and `main` is expected to end cleanly then; a
    second signal cancels it. Garbage is collected less often from here on, for the whole process, and what exists already
    is not looked at any more. A crash in native code leaves the Python stack on the standard error.

    The loop is Python's own. Under uvloop the process is aborted without a word when a TLS connection is given up at a bad
    moment (libuv finds a file closed that it still watches): a leader behind a slow API server does that all day long.
    """
    faulthandler.enable()
    gc.set_threshold(*_GC_THRESHOLDS)
    # A hundred thousand objects of what is imported: the first full collection would look at them while the loop runs.
    settle_gc()
    loop = stalls.Loop()
    collector = _Collector()
    with (
        collector.counting(),
        loop.rounds.calling(ends=collector.between_rounds),
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        return runner.run(_with_signals(main))


async def _with_signals(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal(number: signal.Signals) -> None:
        _LOG.info("signal received", extra={"signal": number.name})
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await main(stop)
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


class _Collector:
    """Collects garbage between two rounds of the loop; where nothing happens nothing has to be collected.

    All times of collections are processor time of the thread: one that the kernel let wait had no more to do for that.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, processor: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._processor = processor
        self._last = clock()
        self._times = 0
        self._began_s = 0.0
        self._middle_s = 0.0
        """Of the middle collections since the last full one."""
        self._middle_in_round = False
        self._full_s = 0.0
        self._freed = 0
        """Of the last full collection."""

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts what collections take until the end of the block: Python calls for its own too, most of which come in bursts."""
        gc.callbacks.append(self._on_collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._on_collection)

    def between_rounds(self) -> None:
        """Looks at young objects if it has not done so for a while; at all of them, and at no more then, if that has added up.

        Not after a round with a middle one in it: such a round has read something large, and both would be one pause.
        """
        if self._middle_s < _FULL_AFTER_S:
            self._look_at_young()
        elif not self._middle_in_round:
            self._look_at_all()
        self._middle_in_round = False

    def _look_at_young(self) -> None:
        now = self._clock()
        if now - self._last >= _COLLECT_S:
            self._last = now
            self._times += 1
            gc.collect(0 if self._times % _MIDDLE_EVERY else 1)

    def _look_at_all(self) -> None:
        # Nothing is collected, nor counted, while another thread does that.
        self._full_s = 0.0
        gc.collect()
        if self._full_s > _LONG_S and (self._freed <= _FEW or self._freed < len(gc.get_objects(2))):
            gc.freeze()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_s = self._processor()
            return
        took_s = self._processor() - self._began_s
        if info["generation"] == 1:
            self._middle_s += took_s
            self._middle_in_round = True
        elif info["generation"] == 2:
            # Somebody else's too: afterwards nothing is old but what this one has seen.
            self._middle_s, self._full_s, self._freed = 0.0, took_s, info["collected"]


async def run_until(stop: asyncio.Event, *runnables: Callable[[], Awaitable[None]]) -> None:
    """Runs all of them until `stop` is set, then cancels and awaits them all.

    A runnable that returns by itself is fine; one that raises ends the others, and the error comes out in an
    ExceptionGroup. It is logged at once: to end in order takes a while, and not everybody is given it.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_coroutine(runnable)) for runnable in runnables]
        for task in tasks:
            task.add_done_callback(_log_failure)
        await stop.wait()
        for task in tasks:
            task.cancel()


async def run_both(first: Awaitable[None], second: Awaitable[None]) -> None:
    """Runs both until either ends, then cancels and awaits the other. What one raises comes out as it is.

    In a TaskGroup it would not keep its type, by which a caller may tell it from others.
    """
    both = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.wait(both)
    for error in [task.exception() for task in both if not task.cancelled()]:
        if error is not None:
            raise error


async def _coroutine(runnable: Callable[[], Awaitable[None]]) -> None:
    await runnable()


async def filled(listed: Awaitable[None]) -> None:
    """Returns when `listed` does, which fills the caches; garbage collections are short meanwhile and from then on.

    A collection that looked at all that has been listed so far would be a pause of hundreds of milliseconds, so what exists
    is taken out of its sight again and again, not only in the end.
    """
    await run_both(listed, _set_aside())
    settle_gc()


async def _set_aside() -> None:
    while True:
        gc.freeze()
        await asyncio.sleep(_SET_ASIDE_S)


def _log_failure(task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _LOG.critical("ending, for a part of the process has failed", exc_info=error)


def settle_gc() -> None:
    """Makes garbage collections short from now on: to be called once the caches are filled, see `filled`.

    What exists now is taken out of all later collections, which would look at it in vain again and again.
    """
    gc.collect()
    gc.freeze()
