"""Long work on the event loop in slices, so that whatever else runs there is never kept waiting for long."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from core.steps import Steps

T = TypeVar("T")

SLICE_S: Final = 0.005
"""How long a slice goes on before others come to their turn; it ends with the step that reaches it."""


class Turns:
    """Works of several tasks, one slice at a time.

    Were they all to take a slice whenever they may, twenty tasks would keep the loop from its sockets twenty slices long.
    They take turns instead, and between two slices of any of them the loop serves everybody else. For one event loop.
    """

    def __init__(self, slice_s: float = SLICE_S, clock: Callable[[], float] | None = None) -> None:
        self._slice_s = slice_s
        self._clock = clock
        self._turn = asyncio.Lock()

    async def finish(self, steps: Steps[T]) -> T:
        """Runs the steps to their end and returns their value."""
        clock = self._clock or asyncio.get_running_loop().time
        while True:
            async with self._turn:
                until = clock() + self._slice_s
                try:
                    next(steps)
                    while clock() < until:
                        next(steps)
                except StopIteration as end:
                    value: T = end.value
                    return value
            # Whoever waits for the turn gets it before this task asks for it again.
            await asyncio.sleep(0)
