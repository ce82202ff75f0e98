"""`cardquota version`."""

import argparse
import platform
from collections.abc import Sequence

from cli import output

HELP = "the version of this program"
DESCRIPTION = "Prints the version of this program."
EPILOG = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "json")


class Action(argparse.Action):
    """`cardquota --version`."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Prints the version and ends."""
        print(f"cardquota {_version()}")
        parser.exit()


def _version() -> str:
    from importlib import metadata

    return metadata.version("cardquota")


def _commit() -> str:
    """The commit that this was built from; empty where the build did not say."""
    from importlib import resources

    try:
        return resources.files("cli").joinpath("commit").read_text("utf-8").strip()
    except FileNotFoundError:
        return ""


def run(options: argparse.Namespace) -> int:
    """Prints the client version."""
    version, commit = _version(), _commit()
    if options.output == "json":
        client = {
            "version": version,
            **({"gitCommit": commit} if commit else {}),
            "python": platform.python_version(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        }
        output.print_json({"clientVersion": client})
    else:
        print(f"Client Version: {version}")
        if commit:
            print(f"Git Commit: {commit}")
    return 0
