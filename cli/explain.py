"""`cardquota explain`: why something waits, who is before it, who holds the quota, what would help, when it may start."""

import argparse
import time
from functools import partial

from cli import cluster, output, targets

HELP = "why something waits, and what would help"
DESCRIPTION = """\
Says of a pod, or of the pods of a PodGroup, a gang or a workload (a Deployment, a Job, a RayCluster, any kind that check knows): the
queue and what named it, what was counted, the position in line and who is before it, what exactly is short and who holds it, what
would help, and when it may start. What would help has been tried: with that and nothing else the pod is lifted.
"""
EPILOG = """\
examples:
  cardquota explain train-5
  cardquota explain ml/train-5
  cardquota explain job/ml/train -o json
  cardquota explain gang/ml/train
  cardquota explain deploy/serve -n ml --state state.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "target", metavar="[KIND/][NAMESPACE/]NAME", help="what to explain; a pod unless a kind is named"
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", help="default: that of the kubeconfig's context"
    )
    output.add_argument(parser, "text", "json", "yaml")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the explanation. What is not there is wrong input."""
    from cli import explain_partly, explain_text
    from cli.explain_report import explained
    from cli.kinds import POD
    from cli.sight import Sight

    target = targets.parse(options.target, options.namespace, partial(cluster.default_namespace, options))
    if options.namespace is None and "/" in options.target:
        options.namespace = target.namespace
    settings, state = cluster.read(options, needs=(POD,))
    target = targets.resolved(target, settings)
    now = time.time_ns() // 1000 if options.state is None else None
    pods = targets.pods_of(state, target)
    if options.state is not None:
        cluster.demand(state, settings, pods)
    sight = Sight(state, settings)
    if sight.missing(pods):
        report, render = (
            explain_partly.explained(state, settings, sight, target, pods, options),
            explain_partly.render,
        )
    else:
        report, render = explained(state, settings, target, pods, now), explain_text.render
    if options.output != "text":
        output.print_document(options.output, report)
    else:
        print(render(report))
    return 0
