"""One admission path: bytes in, an AdmissionReview or a clear HTTP error out, everything counted."""

import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from aiohttp import hdrs, web

from core.admission import messages
from core.admission.request import AdmissionRequest, Decision, Denial
from kube import bigjson, intake
from kube.admission import wire
from kube.admission.metrics import DEFAULT, ReviewMetrics
from kube.intake import Intake, RefusedError
from kube.turns import Turns

_LOG = logging.getLogger(__name__)

_JSON = "application/json"
_NAMED: Final = 320
"""Characters of an object's name and namespace, as much as an API server stores."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

Answer = Callable[[AdmissionRequest], Awaitable[Decision]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_review_route(
    app: web.Application,
    path: str,
    *,
    serves: Callable[[AdmissionRequest], bool],
    answer: Answer,
    metrics: ReviewMetrics = DEFAULT,
    bodies: Intake = intake.DEFAULT,
) -> None:
    """Serves `path` on POST with what `answer` decides; requests that `serves` refuses are a client's mistake.

    The body limit is that of the application. Each refusal leaves a line in the log: who, what, and by which rules.
    """
    handler = review_handler(
        path, serves=serves, answer=answer, metrics=metrics, bodies=bodies, refusals=logging.INFO
    )
    app.router.add_post(path, handler)


def review_handler(
    path: str,
    *,
    serves: Callable[[AdmissionRequest], bool],
    answer: Answer,
    metrics: ReviewMetrics = DEFAULT,
    bodies: Intake = intake.DEFAULT,
    refusals: int = logging.DEBUG,
) -> Handler:
    """As `add_review_route`, for a route of the caller's; `path` is what metrics and messages call it.

    `refusals` is the level of the line that each refusal leaves in the log.
    """
    return _Endpoint(path, serves, answer, metrics, bodies, refusals).handle


class _Endpoint:
    def __init__(
        self,
        path: str,
        serves: Callable[[AdmissionRequest], bool],
        answer: Answer,
        metrics: ReviewMetrics,
        bodies: Intake,
        refusals: int,
    ) -> None:
        self._path = path
        self._serves = serves
        self._decide = answer
        self._metrics = metrics
        self._bodies = bodies
        self._refusals = refusals
        self._turns = Turns()
        self._seconds = metrics.seconds.labels(path)
        self._allowed = metrics.requests.labels(path, "allowed", "")
        self._patched = metrics.requests.labels(path, "patched", "")

    async def handle(self, request: web.Request) -> web.Response:
        """The answer to one POST: 200 with an AdmissionReview, or an HTTP error with one line of text.

        The API server treats every answer but 200 as a failure of the webhook and goes by its failurePolicy.
        """
        # To take the header apart costs as much as to decode the review; nobody who asks here writes more in it.
        if request.headers.get(hdrs.CONTENT_TYPE) != _JSON and request.content_type != _JSON:
            return self._failure(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be {_JSON}, not {request.content_type}"
            )
        try:
            async with self._bodies.body(request, request.client_max_size) as body:
                started = time.perf_counter()
                response = await self._answer(body)
        except RefusedError as refusal:
            return self._failure(refusal.status, str(refusal), refusal.headers)
        self._seconds.observe(time.perf_counter() - started)
        return response

    async def _answer(self, body: bigjson.Body) -> web.Response:
        try:
            if len(body) <= bigjson.WHOLE:
                admission = wire.decode(body)
            else:
                admission = await self._turns.finish(wire.decode_large(body))
        except wire.ReviewError as error:
            return self._failure(HTTPStatus.BAD_REQUEST, str(error))
        if not self._serves(admission):
            what = f"{admission.resource}.{admission.group}".rstrip(".")
            return self._failure(HTTPStatus.BAD_REQUEST, f"{self._path} does not serve {wire.cut(what)}")
        try:
            decision = await self._decide(admission)
            content = wire.encode(admission.uid, decision)
        except Exception as error:  # noqa: BLE001 - the boundary: whatever fails here must not take more than this request
            self._log_crash(admission, error)
            return self._failure(HTTPStatus.INTERNAL_SERVER_ERROR, "the review failed unexpectedly")
        if decision.denial is not None:
            self._metrics.requests.labels(self._path, "denied", decision.denial.violations[0].code).inc()
            self._log_refusal(admission, decision.denial)
        else:
            (self._patched if decision.patch else self._allowed).inc()
        return web.Response(body=content, content_type=_JSON)

    def _failure(self, status: HTTPStatus, text: str, headers: Mapping[str, str] = _NONE) -> web.Response:
        self._metrics.requests.labels(self._path, "failed", str(status.value)).inc()
        return web.Response(status=status, text=text + "\n", headers=headers)

    def _log_refusal(self, admission: AdmissionRequest, denial: Denial) -> None:
        """Who wanted to do what, and the rules that are broken; nothing of the object but its name."""
        codes = dict.fromkeys(violation.code for violation in denial.violations)
        extra = {
            "user": wire.cut(admission.username),
            "operation": admission.operation,
            "object": messages.one_line(admission.display, _NAMED),
            "codes": list(codes),
            "dry_run": admission.dry_run,
        }
        _LOG.log(self._refusals, "refused", extra=extra)

    def _log_crash(self, admission: AdmissionRequest, error: Exception) -> None:
        """Where it happened, but not the error's own text, which may quote the object."""
        where = "".join(traceback.format_tb(error.__traceback__))
        extra = {"uid": admission.uid, "path": self._path, "error": type(error).__name__, "where": where}
        _LOG.error("review failed", extra=extra)
