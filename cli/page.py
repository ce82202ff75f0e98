"""`cardquota page`: the status page in a browser on this machine."""

import argparse
import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from cli import cluster, config, process
from cli.errors import UnavailableError

if TYPE_CHECKING:
    from cli.page_server import Pages

_DESCRIPTION = """\
Serves a read-only page at 127.0.0.1: queues with their quota, who waits and why, how full the cards of each node are, what has changed in
the last hour, and card-hours of the last days. Its address has a random part, which whoever opens it has to know. It needs nothing from the network.
It is there until the command ends.
"""
_EPILOG = """\
examples:
  cardquota page --state state.json
"""


def add_parser(subcommands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = subcommands.add_parser(
        "page", help="the status page in a browser", description=_DESCRIPTION, epilog=_EPILOG
    )
    cluster.add_arguments(parser)
    config.add_argument(parser)
    parser.add_argument("--port", type=process.port, default=0, help="default: any free one")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serves the page until a signal ends it."""
    from cli.page_sources import of_state
    from kube import logs, runtime

    settings, state = cluster.read(options)
    pages = of_state(state, settings, options.state or "the cluster")
    logs.setup("warning", "text")
    try:
        return runtime.run(partial(_serve, pages, options.port))
    except OSError as error:
        raise UnavailableError(str(error), "name a free port: --port N") from error


async def _serve(pages: "Pages", port: int, stop: asyncio.Event) -> int:
    from cli.page_server import PageServer

    async with PageServer(pages, port) as server:
        print(f"Page: {server.url}", flush=True)
        await stop.wait()
    return 0
