"""The endpoints that schedulers ask while they look for a node.

Every replica answers from its own caches, leading or not. Until these are filled nothing is let through.
"""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, TypeVar

import orjson
from aiohttp import web

from controller.caches import Caches
from controller.extender_metrics import ExtenderMetrics
from controller.extender_patience import Changes, Patience
from core.extender import enqueue, kube, volcano
from core.extender.cluster import Cluster
from core.extender.enqueue import Vote
from core.extender.shapes import ShapeError
from core.objects import Group
from core.refusal import Refusal
from core.steps import Steps
from kube import answers, bigjson
from kube.intake import DEFAULT, Intake, RefusedError
from kube.turns import Turns

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

KUBE_FILTER: Final = "/kube/filter"
KUBE_PRIORITIZE: Final = "/kube/prioritize"
KUBE_PATHS: Final = (KUBE_FILTER, KUBE_PRIORITIZE)
VOLCANO_PREDICATE: Final = "/volcano/predicate"
VOLCANO_PRIORITIZE: Final = "/volcano/prioritize"
VOLCANO_JOB_ENQUEUEABLE: Final = "/volcano/jobEnqueueable"
VOLCANO_QUEUE_OVERUSED: Final = "/volcano/queueOverused"

_NOT_READY: Final = "cardquota has not listed the cluster yet"
_JSON: Final = "application/json"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

Look = Callable[[Any], Steps[Any]]
"""What is found out for a question, which comes as it was read; it is read in the same turn, and need not be kept till the next."""
Answer = Callable[[Any], Awaitable[Any]]
"""What is answered to that."""


class Extender:
    """Both protocols over one set of caches. `told` hears of every vote about a job."""

    def __init__(
        self,
        caches: Caches,
        metrics: ExtenderMetrics,
        told: Callable[[Vote], None] = lambda _: None,
        *,
        intake: Intake = DEFAULT,
        turns: Turns | None = None,
    ) -> None:
        self._caches = caches
        self._metrics = metrics
        self._told = told
        self._cluster = Cluster(caches.ledger, caches.guests)
        self._intake = intake
        self._turns = turns or Turns()
        self._promises = enqueue.Promises()
        self._changes = Changes()
        self._patience = Patience(self._changes)
        caches.pods.subscribe(self._changes.note)
        caches.nodes.subscribe(self._changes.note)
        caches.groups.subscribe(self._group_changed)

    def add_kube_routes(self, app: web.Application) -> None:
        """Serves kube-scheduler's protocol on POST."""
        self._add(app, KUBE_FILTER, self._verdicts, self._filter, not_ready=kube.filter_error(_NOT_READY))
        self._add(app, KUBE_PRIORITIZE, self._scores, _as_it_is)

    def add_volcano_routes(self, app: web.Application) -> None:
        """Serves the protocol of Volcano's plugin on POST."""
        self._add(app, VOLCANO_PREDICATE, self._against, self._predicate)
        self._add(app, VOLCANO_PRIORITIZE, self._volcano_scores, _as_it_is)
        self._add(app, VOLCANO_JOB_ENQUEUEABLE, self._vote, self._job_enqueueable)
        self._add(app, VOLCANO_QUEUE_OVERUSED, _as_asked, self._queue_overused)

    def _add(
        self,
        app: web.Application,
        path: str,
        look: Look,
        answer: Answer,
        *,
        not_ready: Mapping[str, Any] | None = None,
    ) -> None:
        endpoint = _Endpoint(
            path, look, answer, self._caches, self._metrics, not_ready, self._intake, self._turns
        )
        app.router.add_post(path, endpoint.handle)

    def _verdicts(self, body: Any) -> Steps[tuple[kube.Request, int, list[kube.Verdict]]]:
        """With the question, and how much had changed when it was looked at."""
        asked, seen = kube.request_of(body), self._changes.count
        return asked, seen, (yield from kube.verdicts(asked, self._cluster))

    async def _filter(self, looked: tuple[kube.Request, int, list[kube.Verdict]]) -> Any:
        asked, seen, found = looked
        if found and not _fits_somewhere(found):
            async with aclosing(self._patience.looks(seen)) as looks:
                async for _ in looks:
                    found = await self._turns.finish(kube.verdicts(asked, self._cluster))
                    if _fits_somewhere(found):
                        break
        self._count(refusal for _, against in found for refusal in against)
        return await self._turns.finish(kube.filter_answer(asked, found))

    def _scores(self, body: Any) -> Steps[Any]:
        return (yield from kube.scored(kube.request_of(body), self._cluster))

    def _against(self, body: Any) -> Steps[tuple[Refusal, ...]]:
        return (yield from volcano.predicate(body, self._cluster))

    async def _predicate(self, against: tuple[Refusal, ...]) -> Any:
        self._count(against)
        return volcano.predicate_answer(against)

    def _volcano_scores(self, body: Any) -> Steps[Any]:
        return volcano.prioritize_answer((yield from volcano.scored(body, self._cluster)))

    def _vote(self, body: Any) -> Steps[Vote]:
        now_s = asyncio.get_running_loop().time()
        return (yield from enqueue.vote(body, self._caches.ledger, self._promises, now_s, self._known))

    async def _job_enqueueable(self, found: Vote) -> Any:
        self._told(found)
        return enqueue.vote_answer(found)

    def _known(self, asking: Group) -> Group | None:
        """The PodGroup of that name as the cluster has it, if it is the very one."""
        found = self._caches.groups.get(asking.key)
        return found if found is not None and found.uid == asking.uid else None

    def _group_changed(self, old: Group | None, new: Group | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._promises.drop(old.key)

    async def _queue_overused(self, body: Any) -> Any:
        return enqueue.overused_answer(body, self._caches.ledger)

    def _count(self, against: Iterable[Refusal]) -> None:
        for code, number in Counter(refusal.code for refusal in against).items():
            self._metrics.refusals.labels(code).inc(number)


def _fits_somewhere(found: Sequence[kube.Verdict]) -> bool:
    return any(not against for _, against in found)


def _as_asked(body: Any) -> Steps[Any]:
    yield from ()
    return body


async def _as_it_is(found: Any) -> Any:
    return found


class _Endpoint:
    def __init__(
        self,
        path: str,
        look: Look,
        answer: Answer,
        caches: Caches,
        metrics: ExtenderMetrics,
        not_ready: Mapping[str, Any] | None,
        intake: Intake,
        turns: Turns,
    ) -> None:
        self._path = path
        self._look = look
        self._answer = answer
        self._caches = caches
        self._metrics = metrics
        self._not_ready = not_ready
        self._intake = intake
        self._turns = turns
        self._seconds = metrics.seconds.labels(path)
        self._limit = caches.ledger.settings.extender.max_body_bytes

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The answer to one POST: 200 with JSON, or an HTTP error with one line of text.

        Schedulers take every answer but 200 as a failure of the extender.
        """
        try:
            # More than an AdmissionReview may have: a request can hold every node of the cluster.
            async with self._intake.body(request, self._limit, "extender.maxBodyBytes") as body:
                if not self._caches.synced:
                    return self._unready()
                with self._seconds.time():
                    found = await self._answered(body)
                if isinstance(found, web.Response):
                    return found
                return await answers.in_parts(request, found, {"Content-Type": _JSON})
        except RefusedError as refusal:
            return self._failure(refusal.status, str(refusal), refusal.headers)

    async def _answered(self, body: bigjson.Body) -> Sequence[bytes] | web.Response:
        """The answer, or what is said in its place."""
        try:
            content = await self._content(body)
        except bigjson.JsonError as error:
            return self._failure(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}")
        except ShapeError as error:
            return self._failure(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # noqa: BLE001 - the boundary: whatever fails here must not take more than this request
            where = "".join(traceback.format_tb(error.__traceback__))
            extra = {"path": self._path, "error": type(error).__name__, "where": where}
            _LOG.error("a scheduler's question failed", extra=extra)
            return self._failure(HTTPStatus.INTERNAL_SERVER_ERROR, "the question failed unexpectedly")
        self._metrics.requests.labels(self._path, "answered").inc()
        return content

    async def _content(self, body: bigjson.Body) -> Sequence[bytes]:
        if len(body) <= bigjson.WHOLE:
            return (orjson.dumps(await self._answer(await self._turns.finish(self._looked(body)))),)
        large: bigjson.Large = set()
        question = await self._turns.finish(bigjson.loads(body, large=large))
        try:
            # Unnamed, so that what goes back of the question is held by the question alone when that is taken apart.
            return await self._turns.finish(
                bigjson.dumps(await self._answer(await self._turns.finish(self._look(question))), large)
            )
        finally:
            await self._turns.finish(bigjson.let_go(question, large))

    def _looked(self, body: bigjson.Body) -> Steps[Any]:
        """Reads a question and looks, so that of many that have come none lies there in pieces until its turn comes again."""
        return (yield from self._look((yield from bigjson.loads(body))))

    def _unready(self) -> web.Response:
        self._metrics.requests.labels(self._path, "not-ready").inc()
        if self._not_ready is not None:
            return web.Response(body=orjson.dumps(self._not_ready), content_type=_JSON)
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=_NOT_READY + "\n")

    def _failure(self, status: HTTPStatus, text: str, headers: Mapping[str, str] = _NONE) -> web.Response:
        self._metrics.requests.labels(self._path, "failed").inc()
        return web.Response(status=status, text=text + "\n", headers=headers)
