"""The admission endpoints: one route for each path of the dispatch table.

Needs no cluster: the view is asked for with each request, so the same application serves live informers, a state
file and a test.
"""

from collections.abc import Callable, Sequence

from aiohttp import web

from core.admission import AdmissionRequest, ClusterView, Context, Decision, Rule, answer, paths_of
from core.settings import Settings
from kube import serving
from kube.admission.endpoint import add_review_route
from kube.admission.metrics import DEFAULT, ReviewMetrics

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
