"""The decision process: what runs in it, in which order it starts, and how it ends."""

import asyncio
import logging
from functools import partial

from prometheus_client import REGISTRY

from controller.announcements import Announcements
from controller.app import add_leader_routes, add_routes
from controller.binding import BindingHook
from controller.caches import Caches
from controller.forwarding import ADDRESS_ANNOTATION, LeaderLink
from controller.leading import Leader
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.options import Options
from controller.publishing import Publisher
from core.settings import Settings
from kube import errors, logs, runtime
from kube.admission.metrics import DEFAULT as REVIEWS
from kube.client import Client
from kube.events import EventRecorder
from kube.health import condition
from kube.lease import Elector
from kube.process import Frame
from kube.serving import application

_LOG = logging.getLogger(__name__)


def run(settings: Settings, options: Options) -> int:
    """Runs the process until SIGTERM or SIGINT; the exit status: 0 after a clean stop, 1 when it cannot start.

    Raises ValueError for options that make no sense.
    """
    logs.setup(options.log_level)
    _ = options.configurations
    if not options.identity:
        raise ValueError("identity: must not be empty")
    try:
        return runtime.run(partial(_serve, settings, options))
    except (errors.KubeError, OSError) as error:
        _LOG.error("cannot start", extra={"error": errors.describe(error)})
        return 1


async def _serve(settings: Settings, options: Options, stop: asyncio.Event) -> int:
    async with await Client.connect(options.kubeconfig) as client:
        frame = Frame(client, options, verify_clients=True)
        caches, metrics = Caches(client, settings), Metrics(REGISTRY)
        series = QueueSeries(caches.ledger)
        REGISTRY.register(series)
        frame.health.require_ready(
            "caches", condition(lambda: caches.synced, "the cluster is not listed yet")
        )
        recorder = EventRecorder(client, "cardquota", options.identity)
        announcements = Announcements(recorder)
        caches.pods.subscribe(lambda old, new: announcements.gone(old.uid) if old and new is None else None)
        elector = Elector(
            client,
            options.namespace,
            options.lease,
            options.identity,
            annotations={ADDRESS_ANNOTATION: options.advertise_address} if options.advertise_address else {},
        )
        link = LeaderLink(elector, lambda: frame.bundle, options.service)
        hook = BindingHook(client, caches, settings, metrics, link.ask)
        leader = Leader(
            caches,
            Lifter(client, caches, announcements, metrics),
            Publisher(client, caches, announcements, metrics),
            hook,
            series,
        )
        app = application()
        add_routes(app, hook, REVIEWS)
        add_leader_routes(app, hook, REVIEWS)

        async def campaign() -> None:
            await caches.wait_synced()
            runtime.settle_gc()
            await elector.run(leader.lead)

        async with frame.listening(app, "binding"):
            await runtime.run_until(stop, frame.run, caches.run, recorder.run, campaign)
    return 0
