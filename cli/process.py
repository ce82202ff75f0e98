"""The flags that the long-running commands share."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import config
from cli.errors import CommandError

if TYPE_CHECKING:
    from core.settings import Settings
    from kube.process import ProcessOptions

NAMESPACE = "cardquota-system"
_LEVELS = ("debug", "info", "warning", "error")


def add_arguments(parser: argparse.ArgumentParser, *, service: str) -> None:
    """What both processes need; the defaults are those of a chart installed under its usual names."""
    config.add_argument(parser, config.NONE)
    add_kubeconfig(parser)
    parser.add_argument(
        "--port", type=port, default=9443, help="HTTPS port (default %(default)s; 0: any free one)"
    )
    parser.add_argument(
        "--metrics-port",
        type=port,
        default=8080,
        help="plain HTTP port of /metrics, /healthz and /readyz (default %(default)s)",
    )
    parser.add_argument(
        "--bind-address",
        metavar="ADDRESS",
        default=_all_addresses(),
        help="address to listen on (default 0.0.0.0, and :: where POD_IP is an address of IPv6)",
    )
    parser.add_argument(
        "--namespace", metavar="NAME", default=NAMESPACE, help="where the process runs (default %(default)s)"
    )
    parser.add_argument(
        "--cert-secret",
        metavar="NAME",
        default="cardquota-certificates",
        help="Secret that holds the webhook's serving certificate (default %(default)s)",
    )
    parser.add_argument(
        "--service",
        metavar="HOST",
        help=f"name under which the API server calls the process (default {service}.<namespace>.svc)",
    )
    parser.add_argument(
        "--dns-name",
        metavar="HOST",
        action="append",
        default=[],
        help="further name in the certificate; may be repeated",
    )
    parser.add_argument(
        "--webhook-configuration",
        metavar="NAME",
        action="append",
        default=[],
        help="webhook configuration whose entries the leader keeps current; may be repeated",
    )
    parser.add_argument(
        "--controller-account",
        metavar="NAME",
        help="user name of the controller (default system:serviceaccount:<namespace>:cardquota-controller)",
    )
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="default %(default)s")
    parser.set_defaults(default_service=service)


def _all_addresses() -> str:
    """What a pod listens on, as it is called from outside: `::` are those of IPv4 as well, but not every pod has any of IPv6."""
    return "::" if ":" in os.environ.get("POD_IP", "") else "0.0.0.0"  # noqa: S104


def check(settings: "Settings", options: "ProcessOptions") -> None:
    """Raises CommandError where `webhook.clientCA` holds what only looks like certificates, or configurations are named wrongly."""
    from kube import tls

    try:
        if settings.webhook.required_ca is not None:
            tls.check_authorities(settings.webhook.required_ca)
    except ValueError as error:
        raise CommandError(f"webhook.clientCA: {error}") from error
    try:
        _ = options.configurations
    except ValueError as error:
        raise CommandError(str(error)) from error


def add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    """`--kubeconfig FILE`."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="the way to the API server; default: the pod's service account, else what kubectl would take",
    )


def shared(options: argparse.Namespace, settings_warnings: tuple[str, ...]) -> dict[str, Any]:
    """The arguments as the fields that the options of both processes have."""
    namespace = options.namespace
    return {
        "namespace": namespace,
        "cert_secret": options.cert_secret,
        "service": options.service or f"{options.default_service}.{namespace}.svc",
        "dns_names": tuple(options.dns_name),
        "webhook_configurations": tuple(options.webhook_configuration),
        "controller_account": options.controller_account
        or f"system:serviceaccount:{namespace}:cardquota-controller",
        "port": options.port,
        "metrics_port": options.metrics_port,
        "bind_address": options.bind_address,
        "kubeconfig": options.kubeconfig,
        "log_level": options.log_level,
        "settings_warnings": settings_warnings,
    }


def seconds(text: str) -> float:
    """A number of seconds above 0, as a webhook's time-out is one. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 30):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of seconds from 1 to 30")
    return float(text)


def url(text: str) -> str:
    """`https://ADDRESS:PORT`, with brackets around an address of IPv6: the chart only has a variable of the pod there."""
    scheme, separator, authority = text.partition("://")
    host, _, number = authority.rpartition(":")
    bare = ":" in host and not host.startswith("[")
    return f"{scheme}{separator}[{host}]:{number}" if bare else text


def port(text: str) -> int:
    """A port number. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port number")
    return int(text)
