"""A loop whose time is work: what is done between two of its rounds is counted in calls, whatever a machine takes for them."""

import asyncio
import gc
import selectors
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")

CALL_S: Final = 0.5e-6
"""What a call takes by its clock, about as much as by a real one: a slice of five milliseconds is ten thousand of them."""


_ENDED: Final = object()


class Calls:
    """Counts the calls that are made, of Python's functions and of others."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, _frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.made += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts until the end of the block.

        Garbage is not collected meanwhile: when that is due depends on all that the process has done before, and whoever is
        told of it, or ends in it, makes calls of his own.
        """
        before, collects = sys.getprofile(), gc.isenabled()
        gc.disable()
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            if collects:
                gc.enable()


def calls_of(work: Callable[[], object]) -> int:
    """How many calls it makes."""
    calls = Calls()
    with calls.counting():
        work()
    return calls.made


def longest_step(steps: Iterator[object]) -> int:
    """The most calls between two pauses of work that may be paused; a thousand take about half a millisecond."""
    found, ended = 0, False

    def once() -> None:
        nonlocal ended
        ended = next(steps, _ENDED) is _ENDED

    while not ended:
        found = max(found, calls_of(once))
    return found


class _Selector(selectors.SelectSelector):
    """Nothing is waited for: time passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for something that never happens"
        self.slept_s += max(0.0, timeout)
        return super().select(0)


class CountedLoop(asyncio.SelectorEventLoop):
    """Its clock goes on with each call, and over the time for which everybody sleeps."""

    def __init__(self) -> None:
        self._sleeper = _Selector()
        self.calls = Calls()
        self.longest = 0
        """The most calls in one round since this was set."""
        super().__init__(self._sleeper)

    def time(self) -> float:
        return self._sleeper.slept_s + self.calls.made * CALL_S

    def _run_once(self) -> None:
        before = self.calls.made
        super()._run_once()  # type: ignore[misc]
        self.longest = max(self.longest, self.calls.made - before)


def run(main: Callable[[CountedLoop], Coroutine[Any, Any, T]]) -> T:
    """Runs it on such a loop."""
    loop = CountedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner, loop.calls.counting():
        return runner.run(main(loop))
