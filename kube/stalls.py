"""A watch over the event loop: while one callback runs nothing else is heard, so each long one is counted and named.

A beat on the loop says that it is alive. A thread beside it sleeps until a beat is overdue, and then looks at what the
loop's thread is running; so finding out costs something only while there is something to find out.
"""

import asyncio
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kube.metrics import DEFAULT, Metrics

_LOG = logging.getLogger(__name__)

STALL_S = 0.05
"""A pause that counts as a stall."""

_BEAT_S = 0.01
_SAMPLE_S = 0.04
"""A loop that was silent for so long is looked at, and each time this has passed again: soon enough for every stall."""

_TELL_EVERY_S = 5.0
_FRAMES = 4
"""So many calls are named, looked for among so many: a recursion may be deep."""
_DEEP = 200

_OURS = frozenset({"core", "kube", "webhook", "controller", "cli"})
"""The packages whose frames say why something runs; what others they call says only what."""


class StallWatch:
    """Measures the pauses of the event loop that it is started on. `longest_s` is the longest one since `reset`.

    A pause is the time between two beats: it shows up to a beat longer than it was, never shorter.
    """

    def __init__(self, metrics: Metrics = DEFAULT) -> None:
        self.longest_s = 0.0
        self._stalls = metrics.loop_stalls
        self._longest = metrics.loop_longest_pause
        self._beat_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._thread_id = 0
        self._seen: tuple[float, Counter[str]] = (0.0, Counter())
        """A beat, and what ran how often when the loop was looked at after it; the thread puts a new one in its place."""
        self._over = threading.Event()
        self._told_at = float("-inf")
        self._untold = 0

    def reset(self) -> None:
        """Looks for the longest pause anew."""
        self.longest_s = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches the running event loop until the end of the block; to be entered in the loop's own thread."""
        self._thread_id = threading.get_ident()
        self._beat_at = time.monotonic()
        self._over.clear()
        thread = threading.Thread(target=self._look_while_silent, name="stall watch", daemon=True)
        thread.start()
        self._go_on(asyncio.get_running_loop())
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._beat()
            self._over.set()
            thread.join()

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat()
        self._timer = loop.call_later(_BEAT_S, self._go_on, loop)

    def _beat(self) -> None:
        before, now = self._beat_at, time.monotonic()
        self._beat_at, pause_s = now, now - before
        if pause_s > self.longest_s:
            self.longest_s = pause_s
            self._longest.set(pause_s)
        if pause_s > STALL_S:
            self._stalls.observe(pause_s)
            self._tell(before, pause_s)

    def _tell(self, since: float, pause_s: float) -> None:
        """One line for each stall, but no flood of them: a loop that stalls all the time has other things to do."""
        if self._beat_at - self._told_at < _TELL_EVERY_S:
            self._untold += 1
            return
        looked, seen = self._seen
        running = max(seen, key=seen.__getitem__) if looked == since and seen else "unknown"
        extra = {"seconds": round(pause_s, 3), "running": running, "untold": self._untold}
        self._told_at, self._untold = self._beat_at, 0
        _LOG.warning("the event loop stood still", extra=extra)

    # -- in the thread -----------------------------------------------------------------------------------------

    def _look_while_silent(self) -> None:
        wait_s = _SAMPLE_S
        while not self._over.wait(wait_s):
            since = self._beat_at
            silent_s = time.monotonic() - since
            if silent_s < _SAMPLE_S:
                wait_s = _SAMPLE_S - silent_s
            else:
                wait_s = _SAMPLE_S
                self._look(since)

    def _look(self, since: float) -> None:
        running = _described(sys._current_frames().get(self._thread_id))  # noqa: SLF001 - documented, despite its name
        looked, seen = self._seen
        seen = Counter(seen) if looked == since else Counter()
        seen[running] += 1
        if self._beat_at == since:  # else the loop has gone on meanwhile, and this may be something else
            self._seen = since, seen


def _described(frame: FrameType | None) -> str:
    """What runs: the innermost call, then the innermost ones of our own packages."""
    found: list[str] = []
    for _ in range(_DEEP):
        if frame is None or len(found) == _FRAMES:
            break
        module = str(frame.f_globals.get("__name__"))
        if not found or module.partition(".")[0] in _OURS:
            found.append(f"{module}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return " < ".join(found)
