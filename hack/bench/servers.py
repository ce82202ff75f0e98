"""`python -m hack.bench.servers KIND`: one HTTPS server on loopback, as its process would run it.

Prints one line of JSON, `{"port": ..., "ca": ...}`, once it listens, and ends when its standard input is closed.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry

from controller.app import add_routes
from controller.binding import BindingHook
from controller.caches import Caches
from controller.extender import Extender
from controller.extender_metrics import ExtenderMetrics
from controller.metrics import Metrics
from core.admission.request import ClusterView
from core.cards.inventory import Inventory
from core.settings import Settings, parse
from hack.bench import samples
from hack.bench.pages import Pages
from kube import pki, runtime
from kube.admission.metrics import ReviewMetrics
from kube.serving import Server, application
from kube.tls import ServingCertificate
from webhook.process import make_app

HOST = "127.0.0.1"
BARE, WEBHOOK, BINDING, EXTENDER = "bare", "webhook", "binding", "extender"
BARE_PATH = "/echo"
BOUND_POD = "web-7"
"""A pod that the binding server knows and that asks for nothing."""

_NODES, _QUEUES, _PODS = 1000, 100, 2000


def main(arguments: list[str]) -> int:
    """Serves until the standard input is closed; the exit status."""
    if len(arguments) != 1 or arguments[0] not in _KINDS:
        print(f"usage: python -m hack.bench.servers {'|'.join(_KINDS)}", file=sys.stderr)
        return 2
    return runtime.run(partial(_serve, arguments[0]))


async def _serve(kind: str, stop: asyncio.Event) -> int:
    async with AsyncExitStack() as stack:
        app = await _KINDS[kind](stack)
        bundle = pki.renewed(None, [HOST], datetime.now(UTC))
        certificate = ServingCertificate()
        certificate.load(bundle.leaf.certificate, bundle.leaf.key)
        server = Server(app, HOST, 0, certificate.context, name=kind, finish_s=1.0)
        await server.start()
        runtime.settle_gc()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)
        print(orjson.dumps({"port": server.port, "ca": bundle.ca_certificates.decode()}).decode(), flush=True)
        await stop.wait()
        await server.stop()
    return 0


async def bare(_stack: AsyncExitStack) -> web.Application:
    """The floor: reads, parses and sends the same bytes back."""

    async def echo(request: web.Request) -> web.Response:
        body = await request.read()
        orjson.loads(body)
        return web.Response(body=body, content_type="application/json")

    app = application()
    app.router.add_post(BARE_PATH, echo)
    return app


async def webhook(_stack: AsyncExitStack) -> web.Application:
    """The admission endpoints over a cluster of 1,000 nodes and 100 queues."""
    settings = Settings()
    inventory = Inventory(settings.cards.resources)
    for number in range(_NODES):
        inventory.put(samples.card_node(number).view())
    queues = {
        f"q{number}": samples.queue(number, dict.fromkeys(samples.PRODUCTS, 80)).view()
        for number in range(_QUEUES)
    }
    return make_app(
        settings,
        lambda: ClusterView(inventory=inventory, queues=queues),
        frozenset({"system:serviceaccount:cardquota-system:cardquota-controller"}),
        metrics=ReviewMetrics(CollectorRegistry()),
    )


async def binding(stack: AsyncExitStack) -> web.Application:
    """The binding hook over informers that hold 2,000 pods that ask for nothing."""
    caches = await _caches(stack, Settings())
    app = application()
    hook = BindingHook(None, caches, caches.ledger.settings, Metrics(CollectorRegistry()))
    add_routes(app, hook, ReviewMetrics(CollectorRegistry()))
    return app


async def _extender(stack: AsyncExitStack) -> web.Application:
    """The extender endpoints over the same informers; a rule is in force, but its quota is all of the node."""
    settings = parse({"gpu-resource-names": "nvidia.com/gpu", "quota-resources": "cpu,memory"})[0]
    caches = await _caches(stack, settings)
    app = application()
    Extender(caches, ExtenderMetrics(CollectorRegistry())).add_volcano_routes(app)
    return app


async def _caches(stack: AsyncExitStack, settings: Settings) -> Caches:
    pods = [orjson.dumps(samples.web_pod(f"web-{number}").build()) for number in range(_PODS)]
    nodes = [orjson.dumps(samples.card_node(number).build()) for number in range(_NODES)]
    caches = Caches(Pages({"pods": lambda: pods, "nodes": lambda: nodes}), settings)
    following = asyncio.create_task(caches.run(), name="informers")
    stack.push_async_callback(_cancelled, following)
    await caches.wait_synced()
    return caches


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


_KINDS: Mapping[str, Callable[[AsyncExitStack], Awaitable[web.Application]]] = {
    BARE: bare,
    WEBHOOK: webhook,
    BINDING: binding,
    EXTENDER: _extender,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
