"""`cardquota webhook`: the admission process."""

import argparse

from cli import config, process

HELP = "the admission process"
DESCRIPTION = """\
Serves the admission webhooks over HTTPS until SIGTERM: gates pods that ask for cards, refuses manifests that can never
mean anything, keeps the card keys in Queue status. Stateless; run as many replicas as you like.
"""
EPILOG = """\
examples:
  cardquota webhook --config /etc/cardquota/cardquota.yaml      in a pod of the chart
  cardquota webhook --kubeconfig ~/.kube/config --bind-address 127.0.0.1 --port 9443
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    process.add_arguments(parser, service="cardquota-webhook")


def run(options: argparse.Namespace) -> int:
    """Runs the process to its end and returns its exit status."""
    from kube.process import ProcessOptions
    from webhook import process as webhook_process

    settings, warnings = config.read(options.config)
    chosen = ProcessOptions(**process.shared(options, warnings))
    process.check(settings, chosen)
    return webhook_process.run(settings, chosen)
