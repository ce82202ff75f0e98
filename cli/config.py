"""The settings of a command: `--config`, and the environment over it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from cli import documents, inputs
from cli.errors import CommandError, InputError

if TYPE_CHECKING:
    from core.settings import Settings


NONE: Final = "every setting at its default"
"""What counts without `--config` where nothing else is asked."""
OFFLINE: Final = f"those that stand in --state, else {NONE}"
"""The same in commands that ask no cluster."""


def add_argument(
    parser: argparse.ArgumentParser, default: str = "those of the cluster's installation"
) -> None:
    """`--config FILE`; `default` says what counts without it."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"settings (YAML or JSON); CARDQUOTA_<SECTION>__<KEY> variables win over it; default: {default}",
    )


def load(name: str | None) -> "Settings":
    """The settings; what the reader should know about them goes to standard error. Raises CommandError."""
    settings, warnings = read(name)
    for warning in warnings:
        print(f"warning: {name or 'environment'}: {warning}", file=sys.stderr)
    return settings


def read(name: str | None) -> "tuple[Settings, tuple[str, ...]]":
    """The settings, and a line for each that is not used as it was written. Raises CommandError."""
    return _parsed(name or "environment", None if name is None else _document(name, inputs.read_text(name)))


def of_text(source: str, text: str) -> "Settings":
    """The settings in a text that stands somewhere else than in a file; warnings as with `load`. Raises CommandError."""
    settings, warnings = _parsed(source, _document(source, text))
    for warning in warnings:
        print(f"warning: {source}: {warning}", file=sys.stderr)
    return settings


def _parsed(source: str, document: object) -> "tuple[Settings, tuple[str, ...]]":
    from core.settings import SettingsError, parse

    try:
        settings, warnings = parse(document, os.environ)
    except SettingsError as error:
        raise CommandError(
            f"{source}: the settings cannot be used:\n  " + "\n  ".join(error.problems),
            "correct each key that is named; values.yaml of the chart has all of them",
        ) from error
    return settings, tuple(warnings)


def _document(name: str, text: str) -> object:
    source = inputs.label(name)
    found = list(documents.read(source, text))
    for document in found:
        for duplicate in document.duplicates:
            raise InputError(source, f"{duplicate.path} is given twice", duplicate.line)
    if len(found) > 1:
        raise InputError(
            source, "settings are one document", found[1].line, "take out all but one of the documents"
        )
    return found[0].value if found else None
