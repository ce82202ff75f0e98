"""Bytes from files, folders and standard input."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cli.errors import CommandError, InputError

STDIN = "-"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def add_files(parser: argparse.ArgumentParser) -> None:
    """The manifests that a command is about, see `manifests`."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="manifest (YAML or JSON), - for standard input; a folder means its *.yaml, *.yml and *.json",
    )


def add_recursive(parser: argparse.ArgumentParser) -> None:
    """`-R`."""
    parser.add_argument("-R", "--recursive", action="store_true", help="also the folders below a folder")


def label(name: str) -> str:
    """How a source is called in messages."""
    return "<stdin>" if name == STDIN else name


def read_bytes(name: str) -> bytes:
    """The content of a file, or of standard input for `-`. Raises InputError."""
    if name == STDIN:
        if sys.stdin is None:  # `<&-`
            raise InputError(label(name), "is closed")
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputError(name, error.strerror or str(error)) from error
    except ValueError as error:  # a NUL in the name
        raise InputError(name, str(error)) from error


def read_text(name: str) -> str:
    """The content as UTF-8 text, without a byte order mark. Raises InputError."""
    return decode(label(name), read_bytes(name))


def decode(source: str, content: bytes) -> str:
    """The bytes as UTF-8 text, without a byte order mark. Raises InputError with the line of the first bad byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            source, f"byte 0x{content[error.start]:02x} is not UTF-8", line, "save the file as UTF-8"
        ) from error


def manifests(names: Sequence[str], *, recursive: bool) -> Iterator[str]:
    """The files that the arguments stand for: a folder means its manifests in order of their names, as for kubectl.

    Raises InputError for a folder without any, and CommandError when standard input is named twice.
    """
    if names.count(STDIN) > 1:
        raise CommandError("standard input can be read only once", "name - once, and files for the rest")
    for name in names:
        if name == STDIN or not Path(name).is_dir():
            yield name
            continue
        found = sorted(
            path
            for path in Path(name).glob("**/*" if recursive else "*")
            if path.suffix in _SUFFIXES and path.is_file()
        )
        if not found:
            raise InputError(name, "the folder has no *.yaml, *.yml or *.json file")
        yield from map(str, found)
