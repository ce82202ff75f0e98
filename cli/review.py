"""`cardquota review`: one AdmissionReview answered without a cluster, a server or a certificate."""

import argparse
import sys
from typing import Final

from cli import cluster, config, inputs
from cli.errors import CommandError, InputError

DEFAULT_CONTROLLER = "system:serviceaccount:cardquota-system:cardquota-controller"
"""The account of the controller where the chart is installed under its usual names."""

HELP = "answer one AdmissionReview"
DESCRIPTION = """\
Reads one AdmissionReview (JSON) from standard input and prints the AdmissionReview that answers it: the patch of the
mutating webhooks and the verdict of the validating ones and the policies, combined as the API server would. The
exit status is 0 whenever an answer is printed, denied or not.
"""
EPILOG = """\
examples:
  cardquota review < review.json
  cardquota review --state state.json < review.json   knows these nodes and queues
"""

_REMEDY: Final = (
    'send what an API server sends: {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", '
    '"request": {"uid": ..}}'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    cluster.add_state(parser, "cluster objects; adds the rules that depend on nodes and queues")
    config.add_argument(parser, config.OFFLINE)
    add_controller_account(parser)


def add_controller_account(parser: argparse.ArgumentParser) -> None:
    """`--controller-account NAME`, as often as there are such accounts."""
    parser.add_argument(
        "--controller-account",
        metavar="NAME",
        action="append",
        help=f"user that may do what only the controller may; may be repeated (default {DEFAULT_CONTROLLER})",
    )


def controllers(options: argparse.Namespace) -> frozenset[str]:
    """The accounts that the arguments name."""
    return frozenset(options.controller_account or (DEFAULT_CONTROLLER,))


def run(options: argparse.Namespace) -> int:
    """Prints the answer."""
    from cli import books
    from core.admission import dispatch
    from kube.admission import wire

    if inputs.STDIN in (options.state, options.config):
        raise CommandError("standard input holds the review; name a file for --state and --config")
    settings, state = cluster.offline(options)
    view = books.offline_view(state, settings)
    try:
        request = wire.decode(inputs.read_bytes(inputs.STDIN))
    except wire.ReviewError as error:
        raise InputError(
            inputs.label(inputs.STDIN), f"no AdmissionReview: {error}", remedy=_REMEDY
        ) from error
    decision = dispatch.review(request, view, settings, controllers=controllers(options))
    sys.stdout.write(wire.encode(request.uid, decision).decode() + "\n")
    return 0
