"""`--watch`: the same answer again and again, as the cluster goes on."""

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Callable
from typing import Final

from cli.errors import CommandError, UnavailableError

_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"
_DEFAULT_S: Final = 5
_LEAST_S: Final = 1


def add_argument(parser: argparse.ArgumentParser) -> None:
    """`--watch [SECONDS]`."""
    parser.add_argument(
        "-w",
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=_seconds,
        const=_DEFAULT_S,
        help=f"ask again every so many seconds (default {_DEFAULT_S}) until Ctrl-C; of a live cluster only",
    )


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not _LEAST_S <= int(text) <= 3600:
        raise argparse.ArgumentTypeError(f"must be a whole number of seconds from 1 to 3600, not {text!r}")
    return int(text)


def run(options: argparse.Namespace, once: Callable[[argparse.Namespace], None]) -> int:
    """Prints the answer once, or again and again; what is beside it only the first time. Raises CommandError."""
    if options.watch is None:
        once(options)
        return 0
    if options.state is not None:
        raise CommandError(
            "--watch is for a live cluster: a file does not change", "leave out --watch or --state"
        )
    text = _captured(options, once)
    while True:
        print(f"{_CLEAR}{text}" if sys.stdout.isatty() else text, end="" if sys.stdout.isatty() else "\n")
        sys.stdout.flush()
        time.sleep(options.watch)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                text = _captured(options, once)
        except UnavailableError as error:
            # It may well come back; what was shown last stays in view.
            print(f"error: {error}; trying again", file=sys.stderr)


def _captured(options: argparse.Namespace, once: Callable[[argparse.Namespace], None]) -> str:
    """The whole answer, so that the screen is empty for a moment only."""
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        once(options)
    return page.getvalue()
