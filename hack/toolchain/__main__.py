"""`python -m hack.toolchain [--only NAME...]`: builds what is missing and prints the folder.

Without names it sees to Prometheus and to programs of others as well; what needs them goes without where they cannot be had.
"""

import argparse
import sys

from hack.toolchain import BINARIES, OTHERS, Reporter, Store, ToolchainError, prometheus, to_stream


def main(arguments: list[str] | None = None) -> int:
    """Build the named binaries (all by default); the folder is the last line of standard output."""
    parser = argparse.ArgumentParser(prog="python -m hack.toolchain", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[*BINARIES, *OTHERS])
    options = parser.parse_args(arguments)
    store, reporter = Store(), to_stream()
    try:
        store.ensure(options.only or BINARIES, reporter)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.only is None:
        prometheus.fetch(reporter.line)
        _build_others(store, reporter)
    print(store.folder)
    return 0


def _build_others(store: Store, reporter: Reporter) -> None:
    for name in OTHERS:
        try:
            store.ensure([name], reporter)
        except ToolchainError as error:
            reporter.line(f"{name}: not to be had, tests that need it are skipped: {error}")


if __name__ == "__main__":
    sys.exit(main())
