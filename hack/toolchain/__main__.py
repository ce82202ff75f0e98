"""`python -m hack.toolchain [--only NAME...]`: builds what is missing and prints the folder."""

import argparse
import sys

from hack.toolchain import BINARIES, Store, ToolchainError, to_stream


def main(arguments: list[str] | None = None) -> int:
    """Build the named binaries (all by default); the folder is the last line of standard output."""
    parser = argparse.ArgumentParser(prog="python -m hack.toolchain", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(BINARIES), default=list(BINARIES))
    options = parser.parse_args(arguments)
    store = Store()
    try:
        store.ensure(options.only, to_stream())
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(store.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
