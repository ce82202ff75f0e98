"""`cardquota controller`: the decision process."""

import argparse
import platform
import uuid

from cli import config, process

HELP = "the decision process"
DESCRIPTION = """\
Follows the cluster until SIGTERM. Every replica answers the binding hook and the scheduler extenders; the one that holds
the Lease lifts gates, writes Queue status, and keeps the certificates and the path of the hook.
"""
EPILOG = """\
examples:
  cardquota controller --config /etc/cardquota/cardquota.yaml      in a pod of the chart
  cardquota controller --kubeconfig ~/.kube/config --bind-address 127.0.0.1 --port 9444 --metrics-port 8081
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    process.add_arguments(parser, service="cardquota-controller")
    parser.add_argument(
        "--authority-secret",
        metavar="NAME",
        default="cardquota-controller",
        help="Secret of the controllers alone: authority, their pair, path of the hook (default %(default)s)",
    )
    parser.add_argument(
        "--webhook-name",
        metavar="HOST",
        action="append",
        default=[],
        help="name in the webhook's certificate; may be repeated (default cardquota-webhook.<namespace>.svc)",
    )
    parser.add_argument(
        "--certificates",
        choices=("issue", "given"),
        default="issue",
        help="whether the leader issues the certificates in both Secrets, or somebody else puts them there (default %(default)s)",
    )
    parser.add_argument(
        "--lease", metavar="NAME", default="cardquota", help="Lease that makes a leader (default %(default)s)"
    )
    parser.add_argument(
        "--identity",
        metavar="NAME",
        help="name in the Lease, a random ending is added (default: the host's name)",
    )
    parser.add_argument(
        "--advertise-address",
        metavar="URL",
        type=process.url,
        default="",
        help="where other replicas reach this one, https://ADDRESS:PORT; without it they cannot forward binds",
    )
    parser.add_argument(
        "--hook-timeout",
        metavar="SECONDS",
        type=process.seconds,
        default=5.0,
        help="how long the API server waits for the binding hook (default %(default)s)",
    )
    parser.add_argument(
        "--extender-port",
        metavar="PORT",
        type=process.port,
        help="plain HTTP for Volcano's extender plugin (default: none)",
    )
    parser.add_argument(
        "--kube-extender-port",
        metavar="PORT",
        type=process.port,
        help="HTTPS for kube-scheduler's extender (default: none)",
    )
    parser.add_argument(
        "--answers-port",
        metavar="PORT",
        type=process.port,
        help="HTTPS for people who ask why their pods wait; they show the token of their kubeconfig (default: none)",
    )
    parser.add_argument(
        "--answers-page",
        action="store_true",
        help="show the status page there, too, to each who asks what that one may see",
    )


def run(options: argparse.Namespace) -> int:
    """Runs the process to its end and returns its exit status."""
    from controller import process as controller_process
    from controller.options import Options

    settings, warnings = config.read(options.config)
    chosen = Options(
        **process.shared(options, warnings),
        lease=options.lease,
        # A container that restarts in its pod is another process than the one that may still hold the Lease.
        identity=f"{options.identity or platform.node()}_{uuid.uuid4()}",
        advertise_address=options.advertise_address,
        hook_timeout_s=options.hook_timeout,
        extender_port=options.extender_port,
        kube_extender_port=options.kube_extender_port,
        answers_port=options.answers_port,
        answers_page=options.answers_page,
        authority_secret=options.authority_secret,
        given_certificates=options.certificates == "given",
        webhook_names=tuple(options.webhook_name) or (f"cardquota-webhook.{options.namespace}.svc",),
    )
    process.check(settings, chosen)
    return controller_process.run(settings, chosen)
