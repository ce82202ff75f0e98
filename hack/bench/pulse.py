"""How long an event loop is deaf: its beats, and what ran where one of them came late."""

import asyncio
import gc
import os
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
_TOLD_MS: Final = 30.0
_TOLD: Final = 4
_FRAMES: Final = 5
_OURS: Final = frozenset({"core", "kube", "webhook", "controller", "hack"})
_CHARACTERS: Final = 100


@dataclass(slots=True)
class Deaf:
    """The longest pause, by the clock and without the time in which the kernel let others run; the longest collection."""

    longest_ms: float = 0.0
    net_ms: float = 0.0
    collection_ms: float = 0.0
    """Processor time."""
    running: list[tuple[float, float, str]] = field(default_factory=list)
    """Long pauses without and with waiting, in milliseconds, and the calls; the longest first."""


class Pulse:
    """Beats on the running loop, apart from what others do to it.

    On a machine with other work a process waits for a processor most of the time, whatever it does. The kernel keeps count
    of that, and only the rest of a pause says something about the process.
    """

    def __init__(self) -> None:
        self._deaf = Deaf()
        self._beat_at = 0.0
        self._waited_s = 0.0
        self._schedule = -1
        self._timer: asyncio.TimerHandle | None = None
        self._thread_id = 0
        self._seen: tuple[float, Counter[str]] = (0.0, Counter())
        self._over = threading.Event()
        self._collecting = 0.0
        self._collected_ms = 0.0
        """Processor time of the collections since the last beat."""

    def take(self) -> Deaf:
        """What was seen since the last call."""
        taken, self._deaf = self._deaf, Deaf()
        return taken

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Beats until the end of the block; to be entered on the loop."""
        self._thread_id = threading.get_ident()
        self._schedule = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._beat_at, self._waited_s = time.monotonic(), self._waiting_s()
        thread = threading.Thread(target=self._look_while_silent, daemon=True)
        thread.start()
        gc.callbacks.append(self._on_collection)
        self._beat(asyncio.get_running_loop())
        try:
            yield
        finally:
            gc.callbacks.remove(self._on_collection)
            if self._timer is not None:
                self._timer.cancel()
            self._over.set()
            thread.join()
            os.close(self._schedule)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        before, now = self._beat_at, time.monotonic()
        waited_before, waited = self._waited_s, self._waiting_s()
        self._beat_at, self._waited_s = now, waited
        longest_ms = max(0.0, (now - before - _BEAT_S) * 1000)
        net_ms = max(0.0, longest_ms - (waited - waited_before) * 1000)
        deaf = self._deaf
        deaf.longest_ms, deaf.net_ms = max(deaf.longest_ms, longest_ms), max(deaf.net_ms, net_ms)
        if net_ms > _TOLD_MS:
            told = (net_ms, longest_ms, self._ran(before))
            deaf.running = sorted([*deaf.running, told], reverse=True)[:_TOLD]
        self._collected_ms = 0.0
        self._timer = loop.call_later(_BEAT_S, self._beat, loop)

    def _waiting_s(self) -> float:
        """How long this thread has been ready to run without being let, since it began."""
        return int(os.pread(self._schedule, _CHARACTERS, 0).split()[1]) / 1e9

    def _ran(self, since: float) -> str:
        looked, seen = self._seen
        running = max(seen, key=seen.__getitem__) if looked == since and seen else "unknown"
        collected = (
            f"{self._collected_ms:.0f} ms of garbage collection in " if self._collected_ms >= 1 else ""
        )
        return collected + running

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread_id:
            return
        if phase == "start":
            self._collecting = time.thread_time()
            return
        taken_ms = (time.thread_time() - self._collecting) * 1000
        self._collected_ms += taken_ms
        self._deaf.collection_ms = max(self._deaf.collection_ms, taken_ms)

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
