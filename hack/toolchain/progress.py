"""Signs of life from a build of minutes: one line per binary on a terminal, a line every ten seconds in a log."""

import sys
from collections.abc import Callable
from typing import TextIO

HEARTBEAT_S = 10.0
_REFRESH_S = 1.0


class Reporter:
    """Writes finished lines and shows what runs at present.

    `say` gets whole lines. With `terminal` the running line is rewritten in place every second instead of being
    repeated.
    """

    def __init__(self, say: Callable[[str], None], *, terminal: TextIO | None = None) -> None:
        self._say = say
        self._terminal = terminal
        self.interval_s = HEARTBEAT_S if terminal is None else _REFRESH_S

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self._clear()
        self._say(text)

    def alive(self, text: str) -> None:
        """Show that `text` still goes on."""
        if self._terminal is None:
            self._say(text)
        else:
            self._clear()
            self._terminal.write(text)
            self._terminal.flush()

    def _clear(self) -> None:
        if self._terminal is not None:
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()


def to_stream(stream: TextIO | None = None) -> Reporter:
    """Return a reporter for a stream (standard output by default), in place when it is a terminal."""
    out = stream or sys.stdout
    return Reporter(lambda text: print(text, file=out, flush=True), terminal=out if out.isatty() else None)


def duration(seconds: float) -> str:
    """Write a time span as `42 s` or `3 min 05 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
