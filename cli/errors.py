"""What a command says instead of a traceback."""

from typing import ClassVar, Final

_PLACE: Final = "correct what stands there; nothing was taken from the file"
_FILE: Final = "name a file that can be read, or - for standard input"

_CLUSTER: Final = "--kubeconfig FILE and --context NAME say which cluster is asked; --state FILE asks none"


class CommandError(Exception):
    """The command cannot do what it was asked; `str()` is the text after `error: `, `remedy` says what to do about it.

    It is empty where the text says that itself.
    """

    status: ClassVar[int] = 2
    """The exit status."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


class InputError(CommandError):
    """A file cannot be read, or something in it is wrong; with the line where there is one."""

    def __init__(self, source: str, problem: str, line: int | None = None, remedy: str | None = None) -> None:
        shown = f"{source}:{line}: {problem}" if line else f"{source}: {problem}"
        super().__init__(shown, (_PLACE if line else _FILE) if remedy is None else remedy)
        self.source = source
        self.problem = problem
        self.line = line


class UnavailableError(CommandError):
    """What the command needs beside its input cannot be had: the cluster, a port."""

    status = 1

    def __init__(self, text: str, remedy: str = _CLUSTER) -> None:
        super().__init__(text, remedy)
