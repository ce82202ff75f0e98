"""Long work on the event loop in slices, so that whatever else runs there is never kept waiting for long."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from core.steps import Steps

T = TypeVar("T")

SLICE_S: Final = 0.005
"""How long a slice goes on before others come to their turn; it ends with the step that reaches it."""


class Turns:
    """Works of several tasks, which share one slice in each round of the loop.

    Were each of them to take its own, twenty tasks would keep the loop from its sockets twenty slices long. What is short
    is done at once as long as there is time left; longer work takes turns, first come, first served. For one event loop.
    """

    def __init__(self, slice_s: float = SLICE_S, clock: Callable[[], float] | None = None) -> None:
        self._slice_s = slice_s
        self._clock = clock
        self._turn = asyncio.Lock()
        self._until: float | None = None
        """The end of the slice of this round; None while nobody has begun it."""

    async def finish(self, steps: Steps[T], *, whole: bool = False) -> T:
        """Runs the steps to their end and returns their value; `whole`: nobody else comes to his turn before that."""
        loop = asyncio.get_running_loop()
        clock = self._clock or loop.time
        while True:
            async with self._turn:
                again = True
                while again:
                    until = self.begin()
                    try:
                        while clock() < until:
                            next(steps)
                    except StopIteration as end:
                        value: T = end.value
                        return value
                    # Within the turn, so that nobody else goes on before the loop has served everybody once.
                    await asyncio.sleep(0)
                    again = whole

    def over(self) -> bool:
        """Whether nothing is left of this round's slice: for works that give way by themselves, and ask after each piece.

        So it is where nobody has begun one: nobody knows for how long the piece has taken.
        """
        clock = self._clock or asyncio.get_running_loop().time
        return self._until is None or clock() >= self._until

    def begin(self) -> float:
        """Begins the slice of this round, unless somebody has. Returns when it ends."""
        if self._until is None:
            loop = asyncio.get_running_loop()
            self._until = (self._clock or loop.time)() + self._slice_s
            loop.call_soon(self._new_round)
        return self._until

    def _new_round(self) -> None:
        self._until = None
