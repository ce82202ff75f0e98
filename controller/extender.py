"""The endpoints that schedulers ask while they look for a node.

Every replica answers from its own caches, leading or not. Until these are filled nothing is let through.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final, TypeVar

import orjson
from aiohttp import web

from controller.caches import Caches
from controller.extender_metrics import ExtenderMetrics
from controller.extender_patience import Changes, Patience
from core.extender import enqueue, kube, volcano
from core.extender.cluster import Cluster
from core.extender.enqueue import Vote
from core.extender.pipeline import Refusal
from core.extender.shapes import ShapeError

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

KUBE_FILTER: Final = "/kube/filter"
KUBE_PRIORITIZE: Final = "/kube/prioritize"
VOLCANO_PREDICATE: Final = "/volcano/predicate"
VOLCANO_PRIORITIZE: Final = "/volcano/prioritize"
VOLCANO_JOB_ENQUEUEABLE: Final = "/volcano/jobEnqueueable"
VOLCANO_QUEUE_OVERUSED: Final = "/volcano/queueOverused"

_NOT_READY: Final = "cardquota has not listed the cluster yet"
_PAUSE_AFTER: Final = 100
"""Nodes that are judged in one go; a millisecond or a few."""

Answer = Callable[[Any], Awaitable[Any]]


class Extender:
    """Both protocols over one set of caches. `told` hears of every vote about a job."""

    def __init__(
        self, caches: Caches, metrics: ExtenderMetrics, told: Callable[[Vote], None] = lambda _: None
    ) -> None:
        self._caches = caches
        self._metrics = metrics
        self._told = told
        self._cluster = Cluster(caches.ledger, caches.guests)
        self._promises = enqueue.Promises()
        self._changes = Changes()
        self._patience = Patience(self._changes)
        caches.pods.subscribe(self._changes.note)
        caches.nodes.subscribe(self._changes.note)

    def add_kube_routes(self, app: web.Application) -> None:
        """Serves kube-scheduler's protocol on POST."""
        self._add(app, KUBE_FILTER, self._filter, not_ready=kube.filter_error(_NOT_READY))
        self._add(app, KUBE_PRIORITIZE, self._prioritize)

    def add_volcano_routes(self, app: web.Application) -> None:
        """Serves the protocol of Volcano's plugin on POST."""
        self._add(app, VOLCANO_PREDICATE, self._predicate)
        self._add(app, VOLCANO_PRIORITIZE, self._volcano_prioritize)
        self._add(app, VOLCANO_JOB_ENQUEUEABLE, self._job_enqueueable)
        self._add(app, VOLCANO_QUEUE_OVERUSED, self._queue_overused)

    def _add(
        self, app: web.Application, path: str, answer: Answer, *, not_ready: Mapping[str, Any] | None = None
    ) -> None:
        endpoint = _Endpoint(path, answer, self._caches, self._metrics, not_ready)
        app.router.add_post(path, endpoint.handle)

    async def _filter(self, body: Any) -> Any:
        asked, seen = kube.request_of(body), self._changes.count
        found = await _gently(kube.verdicts(asked, self._cluster))
        if found and not _fits_somewhere(found):
            async with aclosing(self._patience.looks(seen)) as looks:
                async for _ in looks:
                    found = await _gently(kube.verdicts(asked, self._cluster))
                    if _fits_somewhere(found):
                        break
        for _, against in found:
            self._count(against)
        return kube.filter_answer(asked, found)

    async def _prioritize(self, body: Any) -> Any:
        return await _gently(kube.scored(kube.request_of(body), self._cluster))

    async def _predicate(self, body: Any) -> Any:
        against = volcano.predicate(body, self._cluster)
        self._count(against)
        return volcano.predicate_answer(against)

    async def _volcano_prioritize(self, body: Any) -> Any:
        return volcano.prioritize_answer(await _gently(volcano.scored(body, self._cluster)))

    async def _job_enqueueable(self, body: Any) -> Any:
        now_s = asyncio.get_running_loop().time()
        found = enqueue.vote(body, self._caches.ledger, self._promises, now_s)
        self._told(found)
        return enqueue.vote_answer(found)

    async def _queue_overused(self, body: Any) -> Any:
        return enqueue.overused_answer(body, self._caches.ledger)

    def _count(self, against: tuple[Refusal, ...]) -> None:
        for refusal in against:
            self._metrics.refusals.labels(refusal.code).inc()


def _fits_somewhere(found: Sequence[kube.Verdict]) -> bool:
    return any(not against for _, against in found)


async def _gently(items: Iterator[T]) -> list[T]:
    """All items, with a pause now and then in which others are served."""
    found: list[T] = []
    for item in items:
        found.append(item)
        if len(found) % _PAUSE_AFTER == 0:
            await asyncio.sleep(0)
    return found


class _Endpoint:
    def __init__(
        self,
        path: str,
        answer: Answer,
        caches: Caches,
        metrics: ExtenderMetrics,
        not_ready: Mapping[str, Any] | None,
    ) -> None:
        self._path = path
        self._answer = answer
        self._caches = caches
        self._metrics = metrics
        self._not_ready = not_ready
        self._seconds = metrics.seconds.labels(path)
        self._limit = caches.ledger.settings.extender.max_body_bytes

    async def handle(self, request: web.Request) -> web.Response:
        """The answer to one POST: 200 with JSON, or an HTTP error with one line of text.

        Schedulers take every answer but 200 as a failure of the extender.
        """
        try:
            # Far more than an AdmissionReview may have: a request can hold every node of the cluster.
            body = await request.clone(client_max_size=self._limit).read()
        except web.HTTPRequestEntityTooLarge:
            text = f"the body is larger than extender.maxBodyBytes, {self._limit} bytes"
            return self._failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
        if not self._caches.synced:
            return self._unready()
        with self._seconds.time():
            return await self._answered(body)

    async def _answered(self, body: bytes) -> web.Response:
        try:
            content = orjson.dumps(await self._answer(orjson.loads(body)))
        except orjson.JSONDecodeError as error:
            return self._failure(
                HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error.msg} at byte {error.pos}"
            )
        except ShapeError as error:
            return self._failure(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # noqa: BLE001 - the boundary: whatever fails here must not take more than this request
            where = "".join(traceback.format_tb(error.__traceback__))
            extra = {"path": self._path, "error": type(error).__name__, "where": where}
            _LOG.error("a scheduler's question failed", extra=extra)
            return self._failure(HTTPStatus.INTERNAL_SERVER_ERROR, "the question failed unexpectedly")
        self._metrics.requests.labels(self._path, "answered").inc()
        return web.Response(body=content, content_type="application/json")

    def _unready(self) -> web.Response:
        self._metrics.requests.labels(self._path, "not-ready").inc()
        if self._not_ready is not None:
            return web.Response(body=orjson.dumps(self._not_ready), content_type="application/json")
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=_NOT_READY + "\n")

    def _failure(self, status: HTTPStatus, text: str) -> web.Response:
        self._metrics.requests.labels(self._path, "failed").inc()
        return web.Response(status=status, text=text + "\n")
