"""Clocks that count: time passes with each look at them, so that slices of work are counted and not measured."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kube.turns import Turns


class Ticking:
    """A clock that goes on by a millisecond with each reading; there is one reading for each step of work."""

    def __init__(self) -> None:
        self.readings = 0
        self.longest = 0
        """The most readings between two moments at which others were served."""

    def __call__(self) -> float:
        self.readings += 1
        return self.readings / 1000

    @property
    def turns(self) -> Turns:
        """Slices of five milliseconds by this clock."""
        return Turns(0.005, self)

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Somebody else lives on the loop meanwhile, and notes for how long nobody listened to it."""
        ended, seen = False, self.readings

        async def live() -> None:
            nonlocal seen
            while not ended:
                self.longest, seen = max(self.longest, self.readings - seen), self.readings
                await asyncio.sleep(0)

        living = asyncio.create_task(live())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            ended = True
            await living
