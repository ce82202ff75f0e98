"""What a command says instead of a traceback."""

from typing import ClassVar


class CommandError(Exception):
    """The command cannot do what it was asked; `str()` is the text after `error: `."""

    status: ClassVar[int] = 2
    """The exit status."""


class InputError(CommandError):
    """A file cannot be read, or something in it is wrong; with the line where there is one."""

    def __init__(self, source: str, problem: str, line: int | None = None) -> None:
        super().__init__(f"{source}:{line}: {problem}" if line else f"{source}: {problem}")
        self.source = source
        self.problem = problem
        self.line = line


class UnavailableError(CommandError):
    """What the command needs beside its input cannot be had: the cluster, a port."""

    status = 1
