"""How long an event loop is deaf: its beats, and what ran where one of them came late."""

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

_BEAT_S: Final = 0.002
_LATE_S: Final = 0.02
"""A beat that is so late has the thread look at what runs, and again each time this has passed."""
_TOLD_MS: Final = 50.0
_TOLD: Final = 4
_FRAMES: Final = 5
_OURS: Final = frozenset({"core", "kube", "webhook", "controller", "hack"})


@dataclass(slots=True)
class Deaf:
    """The longest pause by the clock, the longest stretch of processor time within one, and what ran in long ones."""

    longest_ms: float = 0.0
    stretch_ms: float = 0.0
    running: list[tuple[float, float, str]] = field(default_factory=list)
    """Pause and processor time in milliseconds, and the calls; the longest pauses first."""


class Pulse:
    """Beats on the running loop. Unlike the product's own watch it tells processor time as well, and beats faster.

    On a machine with other work the clock also counts the time in which this process was not let run; what it would be
    without that lies between the two.
    """

    def __init__(self) -> None:
        self._deaf = Deaf()
        self._beat_at = 0.0
        self._cpu_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._thread_id = 0
        self._seen: tuple[float, Counter[str]] = (0.0, Counter())
        self._over = threading.Event()

    def take(self) -> Deaf:
        """What was seen since the last call."""
        taken, self._deaf = self._deaf, Deaf()
        return taken

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Beats until the end of the block; to be entered on the loop."""
        loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._beat_at, self._cpu_at = time.monotonic(), time.thread_time()
        thread = threading.Thread(target=self._look_while_silent, daemon=True)
        thread.start()
        self._beat(loop)
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._over.set()
            thread.join()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        before, now, cpu = self._beat_at, time.monotonic(), time.thread_time()
        pause_ms, stretch_ms = (now - before - _BEAT_S) * 1000, (cpu - self._cpu_at) * 1000
        self._beat_at, self._cpu_at = now, cpu
        deaf = self._deaf
        deaf.longest_ms = max(deaf.longest_ms, pause_ms)
        deaf.stretch_ms = max(deaf.stretch_ms, stretch_ms)
        if pause_ms > _TOLD_MS:
            looked, seen = self._seen
            running = max(seen, key=seen.__getitem__) if looked == before and seen else "unknown"
            deaf.running = sorted([*deaf.running, (pause_ms, stretch_ms, running)], reverse=True)[:_TOLD]
        self._timer = loop.call_later(_BEAT_S, self._beat, loop)

    # -- in the thread -----------------------------------------------------------------------------------------

    def _look_while_silent(self) -> None:
        while not self._over.wait(_LATE_S):
            since = self._beat_at
            if time.monotonic() - since < _LATE_S:
                continue
            running = _described(sys._current_frames().get(self._thread_id))  # noqa: SLF001 - documented, despite its name
            looked, seen = self._seen
            seen = Counter(seen) if looked == since else Counter()
            seen[running] += 1
            if self._beat_at == since:
                self._seen = since, seen


def _described(frame: FrameType | None) -> str:
    """The innermost call, then the innermost ones of our own packages."""
    found: list[str] = []
    while frame is not None and len(found) < _FRAMES:
        module = str(frame.f_globals.get("__name__"))
        if not found or module.partition(".")[0] in _OURS:
            found.append(f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(found)
