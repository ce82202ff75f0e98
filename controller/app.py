"""The controller's endpoints."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from controller.binding import BindingHook
from controller.forwarding import LEADER_PATH
from core.admission.request import AdmissionRequest, Decision
from kube.admission.endpoint import add_review_route
from kube.admission.metrics import ReviewMetrics

BINDINGS_PATH = "/mutate/bindings"


def add_routes(app: web.Application, hook: BindingHook, metrics: ReviewMetrics) -> None:
    """Serves the binding hook on POST."""
    _add(app, BINDINGS_PATH, hook.review, metrics)


def add_leader_routes(app: web.Application, hook: BindingHook, metrics: ReviewMetrics) -> None:
    """Serves the other replicas, which prove who they are by the certificate that all of them share."""
    app.middlewares.append(_require_certificate)
    _add(app, LEADER_PATH, hook.review_here, metrics)


def _add(
    app: web.Application,
    path: str,
    answer: Callable[[AdmissionRequest], Awaitable[Decision]],
    metrics: ReviewMetrics,
) -> None:
    add_review_route(app, path, serves=_is_binding, answer=answer, metrics=metrics)


def _is_binding(request: AdmissionRequest) -> bool:
    """`pods/binding`, and the older `bindings` that some schedulers still post to."""
    return request.group == "" and (request.resource, request.subresource) in {
        ("pods", "binding"),
        ("bindings", ""),
    }


@web.middleware
async def _require_certificate(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Whoever could ask the leader past the API server could book cards for pods that are never bound."""
    if request.path == LEADER_PATH and not request.get_extra_info("peercert"):
        return web.Response(status=403, text="a client certificate of the controller is required\n")
    return await handler(request)
