"""The controller's endpoints."""

from aiohttp import web

from controller.binding import BindingHook
from core.admission.request import AdmissionRequest
from kube.admission import ReviewMetrics, add_review_route

BINDINGS_PATH = "/mutate/bindings"


def add_routes(app: web.Application, hook: BindingHook, metrics: ReviewMetrics) -> None:
    """Serves the binding hook on POST."""
    add_review_route(app, BINDINGS_PATH, serves=_is_binding, answer=hook.review, metrics=metrics)


def _is_binding(request: AdmissionRequest) -> bool:
    """`pods/binding`, and the older `bindings` that some schedulers still post to."""
    return request.group == "" and (request.resource, request.subresource) in {
        ("pods", "binding"),
        ("bindings", ""),
    }
