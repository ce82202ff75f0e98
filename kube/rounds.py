"""The rounds of an event loop: all that it runs between two looks at what has come.

While a round goes on nothing else is heard. Who has to know how long rounds take, or has something to do between them, is called
when they begin and end: that costs nothing while nothing happens, where a timer would wake the process for ever.
"""

import asyncio
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Begins = Callable[[float | None, bool], None]
"""Called when a round begins: for how long the loop would have slept (None: until something comes), and whether something came."""
Ends = Callable[[], None]


class Rounds(selectors.DefaultSelector):
    """What an event loop looks with: it is asked once in each round."""

    def __init__(self) -> None:
        super().__init__()
        self._begins: tuple[Begins, ...] = ()
        self._ends: tuple[Ends, ...] = ()

    @contextmanager
    def calling(self, *, begins: Begins | None = None, ends: Ends | None = None) -> Iterator[None]:
        """Calls both in each round until the end of the block; what they do belongs to the round."""
        self._begins += (begins,) if begins else ()
        self._ends += (ends,) if ends else ()
        try:
            yield
        finally:
            self._begins = tuple(each for each in self._begins if each != begins)
            self._ends = tuple(each for each in self._ends if each != ends)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As the selector of the platform does."""
        for ends in self._ends:
            ends()
        found = super().select(timeout)
        for begins in self._begins:
            begins(timeout, bool(found))
        return found


class Loop(asyncio.SelectorEventLoop):
    """Python's own event loop, whose rounds can be followed."""

    def __init__(self) -> None:
        self.rounds = Rounds()
        super().__init__(self.rounds)


def of_running_loop() -> Rounds | None:
    """Those of the loop that runs; None where that is of another make."""
    loop = asyncio.get_running_loop()
    return loop.rounds if isinstance(loop, Loop) else None
