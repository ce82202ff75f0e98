"""The admission process: its endpoints, what runs in it, in which order it starts, and how it ends.

There is one route for each path of the dispatch table. The application needs no cluster: the view is asked for with each request,
so the same one serves live informers, a state file and a test.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from aiohttp import web

from core.admission.dispatch import Rule, answer, paths_of
from core.admission.request import AdmissionRequest, ClusterView, Context, Decision
from core.settings import Settings
from kube import process, runtime, serving
from kube.admission.endpoint import add_review_route
from kube.admission.metrics import DEFAULT, ReviewMetrics
from kube.certificates import FollowedPair, follow_secret
from kube.client import Client
from kube.health import condition
from kube.process import Frame, ProcessOptions
from kube.resources import KUBERNETES_PODGROUPS
from kube.tls import ServingCertificate
from kube.versions import Served
from webhook.views import LiveViews

ViewSource = Callable[[], ClusterView]


def make_app(
    settings: Settings,
    view_source: ViewSource,
    controllers: frozenset[str],
    *,
    metrics: ReviewMetrics = DEFAULT,
) -> web.Application:
    """An application with the admission endpoints alone, for bodies of up to 8 MiB."""
    app = serving.application()
    add_routes(app, settings, view_source, controllers, metrics=metrics)
    return app


def add_routes(
    app: web.Application,
    settings: Settings,
    view_source: ViewSource,
    controllers: frozenset[str],
    *,
    metrics: ReviewMetrics = DEFAULT,
) -> None:
    """Serves every path of the dispatch table on POST.

    `view_source` is called once per request and must be cheap. `controllers` are the user names that may change what
    is protected. The body limit is that of the application.
    """
    for path, rules in paths_of(settings).items():
        _add_route(app, path, rules, settings, view_source, controllers, metrics)


def _add_route(
    app: web.Application,
    path: str,
    rules: Sequence[Rule],
    settings: Settings,
    view_source: ViewSource,
    controllers: frozenset[str],
    metrics: ReviewMetrics,
) -> None:
    by_resource = {(rule.group, rule.resource): rule for rule in rules}

    def serves(request: AdmissionRequest) -> bool:
        return (request.group, request.resource) in by_resource

    async def answered(request: AdmissionRequest) -> Decision:
        rule = by_resource[request.group, request.resource]
        return answer(request, Context(view_source(), settings, controllers), rule)

    add_review_route(app, path, serves=serves, answer=answered, metrics=metrics)


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
