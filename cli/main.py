"""The entry point: which command, and what the shell sees of its end.

Nothing heavy is imported here or at the top of a command's module: what a command needs it imports when it runs, so
that `cardquota check` in an editor or a hook answers at once.
"""

import argparse
import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from cli import (
    advise,
    can_run,
    cards,
    check,
    completion,
    controller,
    cross,
    dump,
    explain,
    gpus,
    page,
    place,
    plan,
    queues,
    report,
    review,
    serve,
    ungate_all,
    verify,
    version,
    webhook,
)
from cli.errors import CommandError
from cli.suggestions import nearest

Run = Callable[[argparse.Namespace], int]


class Command(Protocol):
    """A module of this package; the command is called like it."""

    __name__: str
    HELP: str
    DESCRIPTION: str
    EPILOG: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the command's arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Does it, and returns the exit status. Raises CommandError."""


_COMMANDS: tuple[Command, ...] = (
    check,
    plan,
    explain,
    can_run,
    advise,
    place,
    queues,
    cards,
    gpus,
    cross,
    report,
    verify,
    dump,
    review,
    serve,
    page,
    webhook,
    controller,
    ungate_all,
    completion,
    version,
)
_USAGE = 2
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What a full disk or a terminal that is gone says; commands tell of the files that they write themselves."""
_FEW = 8
"""Values that are all named where one is not known."""
_CHOICE = re.compile(
    r"argument (?P<argument>[^:]+): invalid choice: (?P<quote>['\"])(?P<given>.*)(?P=quote) \(choose from (?P<known>.*)\)",
    re.DOTALL,
)
_EPILOG = """\
exit status:
  0  done          1  done, and something is wrong (check, verify), or the cluster cannot be read
  2  wrong usage, or input that cannot be read      3  something would wait (can-run)

Objects come from the live cluster (as kubectl would reach it), or with --state from a file:
  cardquota dump -o state.json
  cardquota plan --state state.json
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; the whole usage is a --help away."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Exits with status 2."""
        self.exit(_USAGE, f"error: {_shorter(message)}\nSee '{self.prog} --help'.\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the program, with all that was printed written: what fails is for `main` to tell."""
        sys.stdout.flush()
        super().exit(status, message)


def _shorter(message: str) -> str:
    """An unknown command or value with the nearest one that there is, instead of with all of them."""
    unknown = _CHOICE.fullmatch(message)
    if unknown is None:
        return message
    known = re.findall(r"'([^']*)'", unknown["known"])
    near = nearest(unknown["given"], known)
    instead = f"; did you mean {near!r}?" if near else ""
    if not instead and len(known) <= _FEW:
        instead = f"; there are {', '.join(known)}"
    what = "unknown command" if unknown["argument"] == "COMMAND" else f"{unknown['argument']}: unknown value"
    return f"{what} {unknown['given']!r}{instead}"


_PLUGIN = "kubectl-cardquota"
"""Under this name on the PATH kubectl finds the program for `kubectl cardquota`."""


def _called() -> str:
    return "kubectl cardquota" if Path(sys.argv[0]).name == _PLUGIN else "cardquota"


def parser() -> Parser:
    """The whole command line; a chosen command leaves its `run` in the namespace."""
    top = Parser(
        prog=_called(), description="Card-level accelerator quota for Kubernetes clusters.", epilog=_EPILOG
    )
    top.add_argument("--version", action=version.Action)
    subcommands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for command in _COMMANDS:
        added = subcommands.add_parser(
            command.__name__.removeprefix("cli.").replace("_", "-"),
            help=command.HELP,
            description=command.DESCRIPTION,
            epilog=command.EPILOG,
        )
        command.add_arguments(added)
        added.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status. Never ends in a traceback for anything the user did."""
    _open_closed()
    _speak_utf8()
    try:
        options = parser().parse_args(arguments)
        run: Run = options.run
        status = run(options)
        sys.stdout.flush()
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.remedy:
            print(f"try: {error.remedy}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # The reader has gone (`| head`): nobody is left to talk to.
        _give_up_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _give_up_output()
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        return CommandError.status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return status


def _give_up_output() -> None:
    """The interpreter's own flush at the end must not complain again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed() -> None:
    """Output that the shell has closed (`>&-`) is None; from here on it takes whatever is written."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _speak_utf8() -> None:
    """Whatever the locale, as kubectl does; what even UTF-8 cannot hold is escaped, which JSON can read back."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
