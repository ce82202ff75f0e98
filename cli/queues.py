"""`cardquota queues`: what each queue may use, uses, holds and waits for."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cli import cluster, config, output

if TYPE_CHECKING:
    from core.queues.ledger import Ledger

_DESCRIPTION = """\
Shows for each queue and card (or mGPU resource) the quota, what bound pods use (allocated), what pods hold that may be
bound any moment (reserved), and what gated pods wait for (waiting).
"""
_EPILOG = """\
examples:
  cardquota queues
  cardquota queues --state state.json -o json
"""
_HEADER = ("QUEUE", "STATE", "KEY", "QUOTA", "ALLOCATED", "RESERVED", "WAITING")


def add_parser(subcommands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = subcommands.add_parser(
        "queues", help="quota and usage of each queue", description=_DESCRIPTION, epilog=_EPILOG
    )
    output.add_argument(parser, "text", "json")
    cluster.add_arguments(parser)
    config.add_argument(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the queues."""
    from cli import books

    settings = config.load(options.config)
    ledger = books.of(cluster.load(options), settings)
    for name, limits in sorted(ledger.limits.items()):
        if limits.malformed:
            print(f"warning: queue {name} has no cards: its quota {limits.malformed}", file=sys.stderr)
    report = summary(ledger)
    if options.output == "json":
        output.print_json(report)
    else:
        print(output.table(_HEADER, list(_rows(report))))
    return 0


def summary(ledger: "Ledger") -> dict[str, dict[str, Any]]:
    """Every queue that exists or is charged, sorted; amounts as in Queue status, what is zero left out."""
    from core.plan.lift import share_of

    names = sorted(ledger.queues.keys() | ledger.accounts.keys())
    return {name: {**_entry(ledger, name), "share": share_of(ledger, name)} for name in names}


def _entry(ledger: "Ledger", name: str) -> dict[str, Any]:
    queue, limits, account = ledger.queues.get(name), ledger.limits.get(name), ledger.accounts.get(name)
    quota = {**limits.cards, **limits.shares} if limits else {}
    return {
        "state": (queue.state or "Open") if queue else "NotFound",
        "quota": output.amounts(quota, zero=True),
        "allocated": output.amounts(account.allocated if account else {}),
        "reserved": output.amounts(account.reserved if account else {}),
        "waiting": output.amounts(account.waiting if account else {}),
    }


def _rows(report: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for name, entry in report.items():
        for key, cells in output.by_key(entry):
            yield (name, entry["state"], key, *cells)
