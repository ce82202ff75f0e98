"""`cardquota version`."""

import argparse
import platform
from typing import Any

from cli import output


def add_parser(subcommands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = subcommands.add_parser(
        "version", help="the version of this program", description="Prints the version of this program."
    )
    output.add_argument(parser, "text", "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the client version."""
    from importlib import metadata

    version = metadata.version("cardquota")
    if options.output == "json":
        client = {
            "version": version,
            "python": platform.python_version(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        }
        output.print_json({"clientVersion": client})
    else:
        print(f"Client Version: {version}")
    return 0
