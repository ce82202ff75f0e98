"""`cardquota ungate-all`: cardquota out of force, and no pod left at its gate."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli import cluster, output, process
from cli.errors import CommandError, UnavailableError

if TYPE_CHECKING:
    from core.ungating import Gated

HELP = "out of force: no webhook, no policy, no gate"
DESCRIPTION = """\
Puts cardquota out of force and lets every pod go that waits at its gate: removes its webhook configurations and admission
policies, then the gates, then its Lease. No quota holds from then on, and mGPU pods get no cards from cardquota. Neither webhook nor
controller need to run. What was interrupted is begun again by calling it once more. `helm uninstall` does the same before it
removes the rest; `helm upgrade` puts cardquota in force again.
"""
EPILOG = """\
examples:
  cardquota ungate-all                       shows what there is, and asks
  cardquota ungate-all --yes --rate 20       as fast as a small cluster can start pods
"""
_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        default=process.NAMESPACE,
        help="where cardquota is installed (default %(default)s)",
    )
    parser.add_argument(
        "--rate",
        metavar="N",
        type=_rate,
        default=100,
        help="gates taken off in a second at most (default %(default)s)",
    )
    cluster.add_live(parser)


def run(options: argparse.Namespace) -> int:
    """Asks, and does it; the last line tells how many gates were taken off."""
    import asyncio

    from kube.errors import KubeError
    from kube.ungating import UngateError

    try:
        if not options.yes:
            _ask(*asyncio.run(_waiting(options.kubeconfig, options.context)))
        lifted = asyncio.run(_ungate(options))
    except (KubeError, UngateError) as error:
        raise UnavailableError(
            f"{output.printable(str(error))}\nWhat was done stays done; call it again."
        ) from error
    print(f"cardquota is out of force; {lifted} gates were taken off, none is left")
    return 0


def _ask(host: str, pods: "Sequence[Gated]") -> None:
    """Returns where somebody says yes. Raises CommandError."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError("nobody can be asked here; say --yes")
    from core.answers.words import counted

    namespaces = sorted({pod.namespace for pod in pods})
    shown = ", ".join(namespaces[:_SHOWN]) + (", ..." if len(namespaces) > _SHOWN else "")
    print(
        f"This puts cardquota out of force on {host}: no quota holds any more, and\n"
        f"{counted(len(pods), 'pod')} that {'waits' if len(pods) == 1 else 'wait'} at its gate {'is' if len(pods) == 1 else 'are'} let go"
        + (f", in {shown}." if pods else "."),
        file=sys.stderr,
    )
    print("Type yes to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise CommandError("not done")


async def _waiting(kubeconfig: Path | None, context: str | None) -> "tuple[str, list[Gated]]":
    from kube import ungating
    from kube.client import Client

    async with await Client.connect(kubeconfig, context) as client:
        return client.host, await ungating.waiting(client)


async def _ungate(options: argparse.Namespace) -> int:
    from kube.client import Client
    from kube.ungating import Limits, Ungating

    async with await Client.connect(options.kubeconfig, options.context) as client:
        return await Ungating(client, options.namespace, _say, Limits(per_second=options.rate)).run()


def _say(line: str) -> None:
    print(output.printable(line), file=sys.stderr, flush=True)


def _rate(text: str) -> int:
    """A number of gates per second, above 0. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 10000")
    return int(text)
