"""`cardquota report`: the card-hours that were used and waited for, and how much of the quota that was."""

import argparse
import csv
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli import cluster, output
from cli.errors import CommandError

if TYPE_CHECKING:
    from core.usage.report import Account, Row

HELP = "card-hours used and waited for"
DESCRIPTION = """\
Shows the card-hours that pods have used, from when they got their node until they gave their quota back, and those that they have
waited for, from their creation until they got a node; and of queues and cards how much of the quota was used.

It comes from what the leading controller writes down (ConfigMap cardquota-usage), by whole days (UTC) of the last five weeks; or
from a Prometheus that scrapes the controllers, to the minute and for as long as that keeps it. Shares of mGPU cards are in it as
vke.volcengine.com/mgpu-core, in cards too, and devices of claims as deviceclass/<class>.
"""
EPILOG = """\
examples:
  cardquota report                                                  the last 7 days, by queue
  cardquota report --since 30d --by namespace -o csv
  cardquota report --since 12h --prometheus http://prometheus.monitoring:9090
  cardquota report --state state.json                               from a dump
"""
_UNITS: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SINCE: Final = re.compile(r"(?P<number>[1-9][0-9]{0,5})(?P<unit>[mhdw])")
_MILLI_HOURS: Final = 3_600_000
_COLUMNS: Final = {"queue": ("queue", "card"), "namespace": ("namespace", "card"), "card": ("card",)}
_AMOUNTS: Final = ("used_card_hours", "waited_card_hours", "quota_card_hours", "quota_share")
_KEYS: Final = ("usedCardHours", "waitedCardHours", "quotaCardHours", "quotaShare")
_HEADER: Final = ("USED(CARD-H)", "WAITED(CARD-H)", "QUOTA(CARD-H)", "SHARE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=_since,
        default="7d",
        help="how far back: a number with m, h, d or w (default 7d)",
    )
    parser.add_argument(
        "--by", choices=tuple(_COLUMNS), default="queue", help="what rows stand for (default queue)"
    )
    parser.add_argument(
        "--prometheus", metavar="URL", help="ask this Prometheus instead of what is written down"
    )
    output.add_argument(parser, "table", "json", "csv")
    cluster.add_source(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the report."""
    from core.usage.report import rows

    if options.prometheus and options.state is not None:
        raise CommandError("--state and --prometheus exclude each other")
    account, source = _account(options)
    found = rows(account, options.by)
    columns = _COLUMNS[options.by]
    if options.output == "json":
        output.print_json(
            {
                "from": output.moment(account.start),
                "to": output.moment(account.end),
                "source": source,
                "rows": [_entry(columns, row) for row in found],
            }
        )
        return 0
    print(
        f"note: from {output.moment(account.start)} to {output.moment(account.end)}, by {source}",
        file=sys.stderr,
    )
    if options.output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow((*columns, *_AMOUNTS))
        writer.writerows((*map(output.printable, row.names), *_cells(row, "")) for row in found)
    else:
        header = (*(column.upper() for column in columns), *_HEADER)
        print(output.table(header, [(*row.names, *_cells(row, "-")) for row in found]))
    return 0


def _account(options: argparse.Namespace) -> "tuple[Account, str]":
    if options.prometheus:
        from cli import prometheus

        found = prometheus.account(options.prometheus, options.since, int(time.time()))
        return found, options.prometheus
    from cli import usage
    from core.usage.report import of_checkpoint

    written, source = usage.written(options)
    return of_checkpoint(written, options.since), source


def _since(text: str) -> int:
    """Seconds."""
    found = _SINCE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number with m, h, d or w, as in 7d")
    return int(found["number"]) * _UNITS[found["unit"]]


def _entry(columns: Sequence[str], row: "Row") -> dict[str, Any]:
    amounts = (row.used, row.waited, row.quota)
    hours = [None if amount is None else round(amount / _MILLI_HOURS, 4) for amount in amounts]
    share = None if row.share is None else round(row.share, 4)
    shown = dict(zip(_KEYS, (*hours, share), strict=True))
    return {
        **dict(zip(columns, row.names, strict=True)),
        **{key: value for key, value in shown.items() if value is not None},
    }


def _cells(row: "Row", nothing: str) -> Iterator[str]:
    for amount in (row.used, row.waited, row.quota):
        yield nothing if amount is None else f"{amount / _MILLI_HOURS:.2f}"
    yield nothing if row.share is None else f"{row.share:.4f}" if not nothing else f"{row.share:.0%}"
