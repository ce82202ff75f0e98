"""`python -m hack.toolchain [--only NAME...]`: builds what is missing and prints the folder.

Without names it sees to Prometheus as well; what needs that goes without where it cannot be had.
"""

import argparse
import sys

from hack.toolchain import BINARIES, Store, ToolchainError, prometheus, to_stream


def main(arguments: list[str] | None = None) -> int:
    """Build the named binaries (all by default); the folder is the last line of standard output."""
    parser = argparse.ArgumentParser(prog="python -m hack.toolchain", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(BINARIES))
    options = parser.parse_args(arguments)
    store, reporter = Store(), to_stream()
    try:
        store.ensure(options.only or BINARIES, reporter)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.only is None:
        prometheus.fetch(reporter.line)
    print(store.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
