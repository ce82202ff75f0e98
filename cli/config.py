"""The settings of a command: `--config`, and the environment over it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from cli import documents, inputs
from cli.errors import CommandError, InputError

if TYPE_CHECKING:
    from core.settings import Settings


def add_argument(parser: argparse.ArgumentParser) -> None:
    """`--config FILE`."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="settings (YAML or JSON); CARDQUOTA_<SECTION>__<KEY> variables win over it; default: all defaults",
    )


def load(name: str | None) -> "Settings":
    """The settings; what the reader should know about them goes to standard error. Raises CommandError."""
    settings, warnings = read(name)
    for warning in warnings:
        print(f"warning: {name or 'environment'}: {warning}", file=sys.stderr)
    return settings


def read(name: str | None) -> "tuple[Settings, tuple[str, ...]]":
    """The settings, and a line for each that is not used as it was written. Raises CommandError."""
    from core.settings import SettingsError, parse

    try:
        settings, warnings = parse(None if name is None else _document(name), os.environ)
    except SettingsError as error:
        raise CommandError(
            f"{name or 'environment'}: the settings cannot be used:\n  " + "\n  ".join(error.problems)
        ) from error
    return settings, tuple(warnings)


def _document(name: str) -> object:
    source = inputs.label(name)
    found = list(documents.read(source, inputs.read_text(name)))
    for document in found:
        for duplicate in document.duplicates:
            raise InputError(source, f"{duplicate.path} is given twice", duplicate.line)
    if len(found) > 1:
        raise InputError(source, "settings are one document", found[1].line)
    return found[0].value if found else None
