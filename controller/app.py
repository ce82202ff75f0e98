"""The controller's endpoints."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from controller.binding import BindingHook
from controller.forwarding import LEADER_PATH
from controller.hook_paths import PLAIN_PATH, HookPaths
from core.admission.request import AdmissionRequest, Decision
from kube import doors, intake, pki
from kube.admission.endpoint import Handler, review_handler
from kube.admission.metrics import ReviewMetrics
from kube.intake import Intake

BINDINGS_PATH: Final = PLAIN_PATH

_KNOWN_MOST: Final = 16
_LEADERS: Final = "/leader/"
"""Under which all is for other replicas alone."""


def add_routes(app: web.Application, hook: BindingHook, metrics: ReviewMetrics) -> None:
    """Serves the binding hook on POST at its plain path, for whoever reaches the port."""
    app.router.add_post(BINDINGS_PATH, _handler(BINDINGS_PATH, hook.review, metrics))


def add_hook_routes(
    app: web.Application,
    hook: BindingHook,
    metrics: ReviewMetrics,
    paths: HookPaths,
    bodies: Intake = intake.DEFAULT,
) -> None:
    """Serves the binding hook on POST at the paths that nobody can guess; at any other nothing seems to be there."""
    answer = _handler(BINDINGS_PATH, hook.review, metrics, bodies)

    async def plain(request: web.Request) -> web.StreamResponse:
        if request.method != "POST" or not paths.plain():
            raise web.HTTPNotFound
        return await answer(request)

    async def secret(request: web.Request) -> web.StreamResponse:
        if request.method != "POST" or not await paths.serves(request.match_info["segment"]):
            raise web.HTTPNotFound
        # Nobody but an API server knows it, and its bind must not lose the connection while it is decided.
        doors.prove(request)
        return await answer(request)

    app.router.add_route("*", BINDINGS_PATH, plain)
    app.router.add_route("*", BINDINGS_PATH + "/{segment}", secret)


def add_leader_routes(
    app: web.Application,
    hook: BindingHook,
    metrics: ReviewMetrics,
    authorities: Callable[[], bytes],
    bodies: Intake = intake.DEFAULT,
) -> None:
    """Serves the other replicas, which prove who they are by the certificate that only controllers have.

    `authorities` are the PEM certificates of those who issue it, as of now.
    """
    app.middlewares.append(_Peers(authorities).let_through)
    app.router.add_post(LEADER_PATH, _handler(LEADER_PATH, hook.review_here, metrics, bodies))


def _handler(
    path: str,
    answer: Callable[[AdmissionRequest], Awaitable[Decision]],
    metrics: ReviewMetrics,
    bodies: Intake = intake.DEFAULT,
) -> Handler:
    return review_handler(path, serves=_is_binding, answer=answer, metrics=metrics, bodies=bodies)


def _is_binding(request: AdmissionRequest) -> bool:
    """`pods/binding`, and the older `bindings` that some schedulers still post to."""
    return request.group == "" and (request.resource, request.subresource) in {
        ("pods", "binding"),
        ("bindings", ""),
    }


class _Peers:
    """Tells the other replicas from everybody else whose certificate is accepted at the port.

    Whoever could ask the leader past the API server could book cards for pods that are never bound.
    """

    def __init__(self, authorities: Callable[[], bytes]) -> None:
        self._authorities = authorities
        self._known: dict[tuple[bytes, bytes], bool] = {}

    @web.middleware
    async def let_through(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.path.startswith(_LEADERS) and not self._is_peer(request):
            return web.Response(status=403, text="a client certificate of the controller is required\n")
        if request.path.startswith(_LEADERS):
            doors.prove(request)
        return await handler(request)

    def _is_peer(self, request: web.Request) -> bool:
        """The handshake has verified that the certificate is the client's and valid; here, who has issued it."""
        line = request.get_extra_info("ssl_object")
        shown = None if line is None else line.getpeercert(binary_form=True)
        if shown is None:
            return False
        asked = (shown, self._authorities())
        if asked not in self._known:
            if len(self._known) >= _KNOWN_MOST:
                self._known.clear()
            self._known[asked] = pki.issued(*asked)
        return self._known[asked]
