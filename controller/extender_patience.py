"""A second look before a pod is told that no node fits.

The scheduler and we hear of a change at the same time, and the scheduler asks at once. A refusal that is given a millisecond
before our own watch shows the change is final until the scheduler finds another occasion, which in a quiet cluster takes
minutes. So such a refusal waits a moment for the watch; not always, for the scheduler places nothing else meanwhile.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

WAIT_S: Final = 0.1
"""The longest wait for one pod; a watch is rarely so late."""
PART: Final = 0.1
"""The part of all time that may be waited in the long run, however many pods fit nowhere."""
SAVED_S: Final = 1.0
"""What may be waited at most after a time without any."""


class Changes:
    """How often something has changed, to be told by `note`."""

    def __init__(self) -> None:
        self.count = 0
        self._next: asyncio.Event | None = None

    def note(self, *_: object) -> None:
        """Something has changed."""
        self.count += 1
        if self._next is not None:
            self._next.set()
            self._next = None

    async def beyond(self, seen: int) -> int:
        """The count, once it is another than `seen`."""
        while self.count == seen:
            self._next = self._next or asyncio.Event()
            await self._next.wait()
        return self.count


class Patience:
    """Deals out the time that may be waited."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._saved_s = SAVED_S
        self._at_s: float | None = None

    async def looks(self, seen: int) -> AsyncGenerator[None]:
        """One step for each change beyond `seen`, as long as there is time left for this pod; none when there is none."""
        clock = asyncio.get_running_loop().time
        started = clock()
        self._save(started)
        until = started + min(WAIT_S, self._saved_s)
        try:
            while clock() < until:
                async with asyncio.timeout_at(until):
                    seen = await self._changes.beyond(seen)
                yield
        except TimeoutError:
            return
        finally:
            self._saved_s = max(self._saved_s - (clock() - started), 0.0)

    def _save(self, now_s: float) -> None:
        if self._at_s is not None:
            self._saved_s = min(self._saved_s + PART * (now_s - self._at_s), SAVED_S)
        self._at_s = now_s
