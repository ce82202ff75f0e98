"""`cardquota can-run`: whether manifests would be refused, wait or run, were they applied now."""

import argparse

from cli import applied, cluster, inputs, output

_REFUSED, _WAITS = 1, 3
HELP = "would a manifest be refused, wait or run"
DESCRIPTION = """\
Says what would become of manifests if they were applied now: refused, by the rules of the webhook; waiting, in which queue,
behind whom, for what, and what would help; or running, on which cards. Nothing is written anywhere. Queues, namespaces and PodGroups
among the manifests count as applied, over those that are there as kubectl apply does it; a pod or workload that is there already is
taken as deleted before. Devices of claims are counted against the quota; which node has them is left to the scheduler.
"""
EPILOG = """\
examples:
  cardquota can-run train.yaml
  cardquota can-run train.yaml --queue research       were it sent to that queue
  helm template . | cardquota can-run - -n ml -o json
  cardquota can-run job.yaml --state state.json

exit status:
  0  all of it would run       1  something would be refused, or the cluster cannot be read
  3  something would wait      2  wrong usage, or input that cannot be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    inputs.add_files(parser)
    parser.add_argument("--queue", metavar="QUEUE", help="send everything to this queue")
    applied.add_arguments(parser)
    output.add_argument(parser, "text", "json", "yaml")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints what would become of the manifests; the worst of it is the exit status."""
    from cli import can_run_text
    from cli.can_run_report import judged

    settings, outcome = applied.to_cluster(options, options.files)
    cluster.demand(outcome.state, settings, [pod for pods in outcome.made.values() for pod in pods])
    report = judged(outcome, settings)
    can_run_text.show(options.output, report, outcome, can_run_text.render)
    return {"refused": _REFUSED, "waits": _WAITS}.get(report["verdict"], 0)
