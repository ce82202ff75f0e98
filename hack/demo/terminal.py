"""What the demo writes: headings, explanations, commands and their output, in colour where somebody looks at it."""

from collections.abc import Mapping
from textwrap import fill
from typing import TextIO

_WIDTH = 100
_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"
_RED = "\x1b[31m"
_CYAN = "\x1b[36m"


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to write colours: on a terminal that knows them, unless NO_COLOR is set to anything."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class Terminal:
    """Writes whole lines to a stream and flushes them, so that a reader behind a pipe follows as well."""

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._stream = stream
        self._colour = colour

    def heading(self, text: str) -> None:
        """The beginning of a section."""
        self._write("")
        self._write(f"== {text}", _BOLD)

    def say(self, text: str) -> None:
        """An explanation; blanks and line ends of the source do not matter."""
        self._write("")
        self._write(fill(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False))

    def step(self, text: str) -> None:
        """A line of progress."""
        self._write(f"   {text}", _DIM)

    def checked(self, text: str) -> None:
        """A claim that was just found true."""
        self._write("")
        self._write(f"checked: {text}", _DIM)

    def command(self, line: str) -> None:
        """A command as a user would type it."""
        self._write("")
        self._write(f"$ {line}", _CYAN)

    def output(self, text: str) -> None:
        """What a program printed, unedited."""
        if text:
            self._write(text.removesuffix("\n"))

    def error(self, text: str) -> None:
        """Why the demo ends here."""
        self._write("")
        self._write(f"error: {text}", _RED)

    def _write(self, text: str, style: str = "") -> None:
        styled = f"{style}{text}{_RESET}" if self._colour and style and text else text
        self._stream.write(f"{styled}\n")
        self._stream.flush()
