"""`cardquota serve`: every endpoint of both processes, on loopback, without certificates."""

import argparse
import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING

from cli import cluster, process, review
from cli.errors import UnavailableError

if TYPE_CHECKING:
    from cli.page_server import Pages
    from cli.state import State
    from core.settings import Settings
    from kube.calls import Reader
    from kube.reflector import ListWatch

HOST = "127.0.0.1"

HELP = "both processes' endpoints on loopback, plain HTTP"
DESCRIPTION = """\
Answers on plain HTTP at 127.0.0.1 what the webhook and the controller answer in a cluster: admission, the binding hook,
the scheduler extenders, /healthz, /readyz (200 once everything is loaded), /metrics, and the status page at the address that the
second line of output names. Writes nothing to any cluster; cards that the binding hook
hands out are taken until no bind of it can be under way any more, a good minute. Ends cleanly on SIGTERM.
"""
EPILOG = """\
examples:
  cardquota serve --state state.json
  curl -s -H 'Content-Type: application/json' --data @review.json http://127.0.0.1:8080/validate/pods
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    cluster.add_arguments(parser)
    parser.add_argument(
        "--port", type=process.port, default=8080, help="default %(default)s; 0: any free one"
    )
    review.add_controller_account(parser)


def run(options: argparse.Namespace) -> int:
    """Serves until a signal ends it."""
    from kube import logs, runtime
    from kube.errors import KubeError

    settings, state = cluster.served(options)
    logs.setup("warning", "text")
    try:
        return runtime.run(partial(_serve, settings, state, options))
    except KubeError as error:
        raise UnavailableError(str(error)) from error
    except OSError as error:
        raise UnavailableError(str(error), "name a free port: --port N, 0 for any") from error


async def _serve(
    settings: "Settings", state: "State | None", options: argparse.Namespace, stop: asyncio.Event
) -> int:
    from kube.client import Client

    if state is not None:
        from cli import page_sources
        from cli.served import StateCluster

        pages = page_sources.of_state_later(state, settings, options.state)
        return await _answer(settings, StateCluster(state), None, options, stop, pages)
    async with await Client.connect(options.kubeconfig, options.context) as client:
        return await _answer(settings, client, client, options, stop)


async def _answer(
    settings: "Settings",
    source: "ListWatch",
    reader: "Reader | None",
    options: argparse.Namespace,
    stop: asyncio.Event,
    pages: "Pages | None" = None,
) -> int:
    from prometheus_client import REGISTRY

    from cli import page_sources
    from cli.page_server import add_page
    from controller import app as controller_app
    from controller.binding import BindingHook
    from controller.caches import Caches
    from controller.device_series import DeviceSeries
    from controller.extender import Extender
    from controller.extender_metrics import ExtenderMetrics
    from controller.metrics import Metrics, QueueSeries
    from kube import metrics, runtime
    from kube.admission.metrics import DEFAULT as REVIEWS
    from kube.health import Health, condition
    from kube.lease import Term
    from kube.serving import Server, application
    from webhook import process as webhook_app
    from webhook.views import LiveViews

    caches, views, health = Caches(source, settings), LiveViews(source, settings), Health()
    health.require_ready("caches", condition(lambda: caches.synced, "the objects are not loaded yet"))
    health.require_ready(
        "views", condition(lambda: views.current().queues is not None, "the queues are not loaded yet")
    )
    app = application()
    webhook_app.add_routes(app, settings, views.current, review.controllers(options))
    hook, series = BindingHook(reader, caches, settings, Metrics(REGISTRY)), QueueSeries(caches.ledger)
    controller_app.add_routes(app, hook, REVIEWS)
    if settings.features.extender:
        extender = Extender(caches, ExtenderMetrics(REGISTRY))
        extender.add_kube_routes(app)
        extender.add_volcano_routes(app)
    REGISTRY.register(series)
    REGISTRY.register(DeviceSeries(caches.ledger.devices, lambda: series.leading))
    # Nobody else is asked, so this replica leads for ever.
    hook.start(Term(0, asyncio.get_running_loop().time, math.inf))
    series.leading = True
    health.add_routes(app)
    metrics.add_route(app)
    page = add_page(app, pages or page_sources.of_caches(caches), lambda: server.port)
    server = Server(app, HOST, options.port, health=health)
    await server.start()
    try:
        print(f"Serving on http://{HOST}:{server.port}", flush=True)
        print(f"Page: http://{HOST}:{server.port}{page}", flush=True)
        await runtime.run_until(stop, caches.run, *views.runnables, hook.run)
    finally:
        await server.stop()
    return 0
