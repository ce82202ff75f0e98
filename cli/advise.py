"""`cardquota advise`: the quota that would let in what waits in a queue, or what manifests ask for."""

import argparse

from cli import applied, cluster, output

_REFUSED, _WAITS = 1, 3
HELP = "what quota a queue would need"
DESCRIPTION = """\
Says what quota a queue would need for what waits in it now, or with --fits for manifests that are not applied yet: the least
that lets all of it in, with those before it in line served first. It has been tried. Nothing is written anywhere. What quota
does not help against is said: a gate of others, a card that no node has, a queue that is closed.
"""
EPILOG = """\
examples:
  cardquota advise research
  cardquota advise research --fits train.yaml
  cardquota advise new-queue --fits job.yaml --state state.json -o json

exit status:
  0  that quota is enough          1  a manifest would be refused, or the cluster cannot be read
  3  something would wait even so  2  wrong usage, or input that cannot be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue; with --fits it need not exist")
    parser.add_argument(
        "--fits",
        nargs="+",
        metavar="FILE",
        help="manifests (YAML or JSON) that are to run, sent to this queue; - for standard input",
    )
    applied.add_arguments(parser)
    output.add_argument(parser, "text", "json", "yaml")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the quota; a queue that is not there, with nothing that would be sent to it, is wrong input."""
    from cli import advise_report, can_run_text
    from cli.sight import Sight

    settings, outcome = applied.to_cluster(options, options.fits)
    waiting = Sight(outcome.state, settings).to_be_let_in(options.queue)
    cluster.demand(
        outcome.state, settings, [*waiting, *(pod for pods in outcome.made.values() for pod in pods)]
    )
    report = advise_report.advised(outcome, settings, options.queue, of_manifests=options.fits is not None)
    can_run_text.show(options.output, report, outcome, advise_report.render)
    waits = report["never"] or report["waits"] or report["noNode"]
    return _REFUSED if report["refused"] else _WAITS if waits else 0
