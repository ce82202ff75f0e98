"""The rounds of an event loop, and a watch over them: while one goes on nothing else is heard, so each long one is counted and named.

A round is all that the loop runs between two looks at what has come: those are a millisecond apart at most, unless something takes
longer. Who has to know how long rounds take, or has something to do between them, is called when they begin and end: that costs
nothing while nothing happens, where a timer would wake the process for ever.

The loop notes when a round begins and ends. A thread beside it sleeps until a round takes long, and then looks at what the
loop's thread is running; so finding out costs something only while there is something to find out, and nothing while the
loop sleeps.
"""

import asyncio
import logging
import selectors
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kube.metrics import DEFAULT, Metrics

Begins = Callable[[float | None, bool], None]
"""Called when a round begins: for how long the loop would have slept (None: until something comes), and whether something came."""
Ends = Callable[[], None]

_LOG = logging.getLogger(__name__)
_UNASKED_S = 0.001
"""For so long a round may go on with what it has begun itself."""
STALL_S = 0.05
"""A pause that counts as a stall."""
_SAMPLE_S = 0.04
"""A round that has gone on for so long is looked at, and each time this has passed again: soon enough for every stall."""
_TELL_EVERY_S = 5.0
_TELL_FROM = 2.0
"""One that is so many times as long as the last one told of is told of at once: the worst of many must not be among those untold."""
_FRAMES = 4
"""So many calls are named, looked for among so many: a recursion may be deep."""
_DEEP = 200
_OURS = frozenset({"core", "kube", "webhook", "controller", "cli"})
"""The packages whose frames say why something runs; what others they call says only what."""
_ASLEEP = 0.0
"""In place of the time at which a round began, while the loop waits for something to come."""


class Rounds(selectors.DefaultSelector):
    """What an event loop looks with; a round goes from one look to the next."""

    def __init__(self) -> None:
        super().__init__()
        self._begins: tuple[Begins, ...] = ()
        self._ends: tuple[Ends, ...] = ()
        self._looks_again_at = 0.0

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
        """As the selector of the platform does, but a loop that has something to run at once does not look too often.

        Python's asks before each thing that the last one has left to run, a dozen times for one event; to ask takes longer than
        most of these.
        """
        if timeout == 0 and time.monotonic() < self._looks_again_at:
            return []
        for ends in self._ends:
            ends()
        found = super().select(timeout)
        self._looks_again_at = time.monotonic() + _UNASKED_S
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


class StallWatch:
    """Measures the pauses of the event loop that it is started on. `longest_s` is the longest one so far.

    A pause is a round of the loop, or the time by which it woke up too late.
    """

    def __init__(self, metrics: Metrics = DEFAULT) -> None:
        self.longest_s = 0.0
        self._stalls = metrics.loop_stalls
        self._longest = metrics.loop_longest_pause
        self._began_at = _ASLEEP
        self._slept_at = 0.0
        self._thread_id = 0
        self._seen: tuple[float, Counter[str]] = (0.0, Counter())
        """When a round began, and what ran how often when it was looked at; the thread puts a new one in its place."""
        self._over = threading.Event()
        self._parked = False
        """Whether the thread sleeps until it is woken."""
        self._wake = threading.Event()
        self._told_at, self._told_s = float("-inf"), 0.0
        self._untold = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches the running event loop until the end of the block; to be entered in the loop's own thread.

        A loop whose rounds cannot be followed is not watched: see `Loop`.
        """
        followed = of_running_loop()
        if followed is None:
            yield
            return
        self._thread_id = threading.get_ident()
        self._began_at = time.monotonic()
        self._over.clear()
        thread = threading.Thread(target=self._look_at_long_rounds, name="stall watch", daemon=True)
        thread.start()
        try:
            with followed.calling(begins=self._begins, ends=self._ends):
                yield
        finally:
            self._ends()
            self._over.set()
            self._wake.set()
            thread.join()

    def _begins(self, timeout_s: float | None, something_came: bool) -> None:
        self._began_at = now = time.monotonic()
        if timeout_s is not None and not something_came:
            self._note(now - self._slept_at - timeout_s, of=_ASLEEP)
        if self._parked:
            self._wake.set()

    def _ends(self) -> None:
        began_at, now = self._began_at, time.monotonic()
        self._began_at, self._slept_at = _ASLEEP, now
        self._note(now - began_at, of=began_at)

    def _note(self, pause_s: float, *, of: float) -> None:
        if pause_s > self.longest_s:
            self.longest_s = pause_s
            self._longest.set(pause_s)
        if pause_s > STALL_S:
            self._stalls.observe(pause_s)
            self._tell(of, pause_s)

    def _tell(self, since: float, pause_s: float) -> None:
        """One line for each stall, but no flood of them: a loop that stalls all the time has other things to do."""
        now = time.monotonic()
        if now - self._told_at < _TELL_EVERY_S and pause_s < _TELL_FROM * self._told_s:
            self._untold += 1
            return
        looked, seen = self._seen
        running = max(seen, key=seen.__getitem__) if looked == since and seen else "unknown"
        if since == _ASLEEP:
            running = "nothing: the process was not let run"
        extra = {"seconds": round(pause_s, 3), "running": running, "untold": self._untold}
        self._told_at, self._told_s, self._untold = now, pause_s, 0
        _LOG.warning("the event loop stood still", extra=extra)

    # -- in the thread -----------------------------------------------------------------------------------------

    def _look_at_long_rounds(self) -> None:
        while not self._over.is_set():
            since = self._began_at
            if since == _ASLEEP and self._slept_through():
                self._park()
            elif since != _ASLEEP:
                self._look_in_time(since)

    def _slept_through(self) -> bool:
        """Whether the loop slept on for a while: to be woken for each round would cost more than to look now and then."""
        slept_at = self._slept_at
        self._over.wait(_SAMPLE_S)
        return self._began_at == _ASLEEP and self._slept_at == slept_at

    def _park(self) -> None:
        self._wake.clear()
        self._parked = True
        # A round may have begun just before that.
        if self._began_at == _ASLEEP and not self._over.is_set():
            self._wake.wait()
        self._parked = False

    def _look_in_time(self, since: float) -> None:
        silent_s = time.monotonic() - since
        if silent_s >= _SAMPLE_S:
            self._look(since)
            silent_s = 0.0
        self._over.wait(_SAMPLE_S - silent_s)

    def _look(self, since: float) -> None:
        running = _described(sys._current_frames().get(self._thread_id))  # noqa: SLF001 - documented, despite its name
        looked, seen = self._seen
        seen = Counter(seen) if looked == since else Counter()
        seen[running] += 1
        if self._began_at == since:  # else the loop has gone on meanwhile, and this may be something else
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
