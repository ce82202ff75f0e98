"""The decision process: what runs in it, in which order it starts, and how it ends."""

import asyncio
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
from kube import process, runtime
from kube.admission.metrics import DEFAULT as REVIEWS
from kube.client import Client
from kube.events import EventRecorder
from kube.health import condition
from kube.lease import Elector
from kube.process import Frame
from kube.serving import application


def run(settings: Settings, options: Options) -> int:
    """Runs the process to its end; see kube.process.run."""
    return process.run(options, partial(_serve, settings, options))


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
        caches.groups.subscribe(lambda old, new: announcements.gone(old.uid) if old and new is None else None)
        elector = Elector(
            client,
            options.namespace,
            options.lease,
            options.identity,
            annotations={ADDRESS_ANNOTATION: options.advertise_address} if options.advertise_address else {},
        )
        link = LeaderLink(
            elector, lambda: frame.bundle, options.service, timeout_s=options.hook_timeout_s / 2
        )
        hook = BindingHook(client, caches, settings, metrics, link.ask)
        leader = Leader(
            caches,
            Lifter(client, caches, announcements, metrics),
            Publisher(client, caches, announcements, metrics),
            hook,
            series,
            quiet_s=options.hook_timeout_s,
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
