"""`cardquota page`: the status page in a browser on this machine."""

import argparse
import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

from cli import cluster, output, process
from cli.errors import UnavailableError

if TYPE_CHECKING:
    from cli.page_server import Pages

HELP = "the status page in a browser"
DESCRIPTION = """\
Serves a read-only page at 127.0.0.1: queues with their quota, who waits and why, how full the cards of each node are, what has changed in
the last hour, and card-hours of the last days. Its address has a random part, which whoever opens it has to know. It needs nothing from the
network, and is there until the command ends.

The leader is asked by way of the API server, and tells what you may see; that takes controller.answers.page in the chart's values and a
kubeconfig with a token. Where it does not answer, the cluster is read as by the other commands.
"""
EPILOG = """\
examples:
  cardquota page
  cardquota page -n ml --port 8088
  cardquota page --state state.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="whose pods are shown to you who may not list those of all; default: that of the kubeconfig's context",
    )
    cluster.add_arguments(parser)
    parser.add_argument("--port", type=process.port, default=0, help="default: any free one")


def run(options: argparse.Namespace) -> int:
    """Serves the page until a signal ends it."""
    from kube import logs, runtime
    from kube.errors import KubeError

    source = source_of(options)
    logs.setup("warning", "text")
    try:
        return runtime.run(partial(_serve, source, options.port))
    except KubeError as error:
        raise UnavailableError(str(error)) from error
    except OSError as error:
        raise UnavailableError(str(error), "name a free port: --port N") from error


def source_of(options: argparse.Namespace) -> "AbstractAsyncContextManager[Pages]":
    """Where pages come from. Raises CommandError where there is nothing to be seen."""
    from contextlib import nullcontext

    from cli import installation, leader, live, page_sources
    from cli.sight import Sight

    if options.state is not None:
        settings, state = cluster.read(options)
        cluster.demand(state, settings, state.pods)
        return nullcontext(page_sources.of_state(state, settings, options.state))
    home = installation.home_of(cluster.installed(options))
    own = cluster.default_namespace(options)
    first = page_sources.question(own=own)
    answer, why = leader.ask(options.kubeconfig, options.context, home, first)
    if answer:
        return page_sources.of_leader(options.kubeconfig, options.context, home, own)
    print(f"note: the leader was not asked: {output.printable(why)}", file=sys.stderr)
    settings, state = cluster.read(options)
    missing = Sight(state, settings).missing(state.pods)
    if missing:
        raise UnavailableError(f"you may not list {missing}, and the leader shows no page", live.RIGHTS)
    return nullcontext(page_sources.of_cluster(options, state, settings))


async def _serve(source: "AbstractAsyncContextManager[Pages]", port: int, stop: asyncio.Event) -> int:
    from cli.page_server import PageServer

    async with source as pages, PageServer(pages, port) as server:
        print(f"Page: {server.url}", flush=True)
        await stop.wait()
    return 0
