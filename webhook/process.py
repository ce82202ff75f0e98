"""The admission process: what runs in it, in which order it starts, and how it ends."""

import asyncio
from functools import partial

from core.settings import Settings
from kube import process, runtime
from kube.certificates import FollowedPair, follow_secret
from kube.client import Client
from kube.health import condition
from kube.process import Frame, ProcessOptions
from kube.resources import KUBERNETES_PODGROUPS
from kube.served import Served
from kube.tls import ServingCertificate
from webhook.app import make_app
from webhook.views import LiveViews


def run(settings: Settings, options: ProcessOptions) -> int:
    """Runs the process to its end; see kube.process.run."""
    return process.run(options, partial(_serve, settings, options))


async def _serve(settings: Settings, options: ProcessOptions, stop: asyncio.Event) -> int:
    async with await Client.connect(options.kubeconfig) as client:
        serving = ServingCertificate(required_ca=settings.webhook.required_ca)
        groups = Served(client, KUBERNETES_PODGROUPS)
        views = LiveViews(client, settings, groups_served=lambda: groups.served)
        secret = follow_secret(client, options.namespace, options.cert_secret)
        frame = Frame(options, serving, FollowedPair(secret, [serving]))
        if settings.cards.pods_without_card_name in ("deny", "infer"):
            # Whoever has not seen the nodes takes no resource for a card, and so would let through what has to be refused.
            frame.health.require_ready("nodes", condition(views.sees_nodes, "the nodes are not listed yet"))
        app = make_app(settings, views.current, frozenset({options.controller_account} - {""}))
        async with frame.listening(app, "admission"):
            runnables = (*views.runnables, groups.run)
            await runtime.run_until(stop, frame.run, *runnables, partial(_settle, views))
    return 0


async def _settle(views: LiveViews) -> None:
    """What was listed stays for long: keeps later garbage collections from walking over it."""
    await runtime.filled(views.wait_listed())
