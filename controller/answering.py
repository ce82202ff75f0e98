"""The read-only port: what the leader knows, for whoever may see it.

A caller shows the token by which the API server knows it, which says who that is and what it may see. Whatever is answered is
small, and whoever asks too often is told to wait: binds and lifts come first.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from controller.knowledge import Knowledge, Refused
from controller.page import Pages
from core.names import ANSWERS_ROOT, TOKEN_HEADER
from core.page.html.document import HEADERS, document
from core.page.view import ViewError, read
from kube import intake
from kube.callers import Allowance, BusyError, Caller, Recent
from kube.errors import KubeError
from kube.intake import Intake, RefusedError

_LOG = logging.getLogger(__name__)

_PAGE: Final = "page"

LEADER_PATH: Final = "/leader/answers"
"""The leader's side of what a standby passes on."""

PER_S: Final = 5.0
BURST: Final = 20.0
"""What one caller may ask in a second, and at once."""
CALLERS: Final = 1024
"""Of so many callers it is counted; an allowance that is forgotten is full again."""
AT_A_TIME: Final = 4
WAITING: Final = 32
"""Answers that are worked on, and questions that wait for their turn."""
ANSWER_S: Final = 8.0
"""How long an answer may take, waiting included."""
_RELAYED: Final = 256 * 1024
"""Bytes of a question that another replica passes on, its caller's groups included."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON, or a page."""

    status: int
    body: bytes
    html: bool = False

    @classmethod
    def of(cls, value: object) -> "Answer":
        """What was asked for."""
        return cls(HTTPStatus.OK, orjson.dumps(value))

    @classmethod
    def error(cls, status: HTTPStatus, text: str) -> "Answer":
        """Why there is none, and what to do; in the form in which API servers say so."""
        shown = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        said = {
            "message": text,
            "reason": _REASONS.get(status, status.phrase.replace(" ", "")),
            "code": status,
        }
        return cls(status, orjson.dumps(shown | said))

    @property
    def response(self) -> web.Response:
        """As it goes out."""
        if self.html:
            return web.Response(body=self.body, content_type="text/html", charset="utf-8", headers=HEADERS)
        again = {"Retry-After": "1"} if self.status in _AGAIN else {}
        return web.Response(
            status=self.status, body=self.body, content_type="application/json", headers=again
        )


_REASONS: Final = {HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable"}
_AGAIN: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class ToLeader(Protocol):
    """What of LeaderLink is called."""

    async def pass_on(self, path: str, body: bytes) -> tuple[int, bytes] | str:
        """See LeaderLink.pass_on."""


class Answers:
    """Answers on every replica: what a standby is asked, the leader answers, at its port for other replicas."""

    def __init__(
        self,
        knowledge: Knowledge,
        leads: Callable[[], bool],
        leader: ToLeader,
        among_replicas: web.Application,
        bodies: Intake = intake.DEFAULT,
        pages: Pages | None = None,
    ) -> None:
        self._knowledge = knowledge
        self._leads = leads
        self._leader = leader
        self._pages = pages
        self._allowances: Recent[str, Allowance] = Recent(CALLERS, life_s=3600.0)
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._inside = 0
        self._add_leader_routes(among_replicas, bodies)

    def add_routes(self, app: web.Application) -> None:
        """The port that people reach; nothing else is on it."""
        app.router.add_get(ANSWERS_ROOT + "{question:.*}", self._asked, allow_head=False)

    def _add_leader_routes(self, app: web.Application, bodies: Intake) -> None:
        """The leader's side, for replicas that have shown who they are, see add_leader_routes of controller.app."""

        async def passed_on(request: web.Request) -> web.StreamResponse:
            try:
                async with bodies.body(request, _RELAYED) as body:
                    told = orjson.loads(body)
                    caller, question = Caller.read(told["caller"]), str(told["question"])
            except RefusedError as refused:
                return web.Response(status=refused.status, text=str(refused), headers=refused.headers)
            except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
                return Answer.error(HTTPStatus.BAD_REQUEST, "no question").response
            if not self._leads():
                return _NOBODY.response
            return (await self._in_turn(self._here(caller, question))).response

        app.router.add_post(LEADER_PATH, passed_on)

    async def _asked(self, request: web.Request) -> web.StreamResponse:
        if request.can_read_body:
            return Answer.error(HTTPStatus.BAD_REQUEST, "a question has no body").response
        try:
            async with asyncio.timeout(ANSWER_S):
                return (await self._of(request)).response
        except TimeoutError:
            return _BUSY.response
        except KubeError as error:
            return _unjudged(error).response

    async def _in_turn(self, answer: Awaitable[Answer]) -> Answer:
        """The answer, unless others take all turns; whoever has not shown a token that counts is not among them."""
        if self._inside >= AT_A_TIME + WAITING:
            _close(answer)
            return _BUSY
        self._inside += 1
        try:
            async with asyncio.timeout(ANSWER_S), self._turns:
                return await answer
        except TimeoutError:
            return _BUSY
        except KubeError as error:
            return _unjudged(error)
        finally:
            _close(answer)
            self._inside -= 1

    async def _of(self, request: web.Request) -> Answer:
        token = _token(request)
        if not token:
            return _WHO
        try:
            caller = await self._knowledge.callers.of_token(token, request.remote or "")
        except BusyError:
            return _BUSY
        if caller is None:
            return _STRANGER
        if not self._allowance(caller).take(asyncio.get_running_loop().time()):
            return _TOO_OFTEN
        question = request.match_info["question"]
        if question != _PAGE:
            return await self._in_turn(self._answer(caller, question))
        return await self._in_turn(self._page(caller, request))

    async def _page(self, caller: Caller, request: web.Request) -> Answer:
        """The status page: for browsers written out, for others as JSON."""
        answer = await self._answer(caller, f"{_PAGE}?{request.query_string}")
        if answer.status != HTTPStatus.OK or "text/html" not in request.headers.get("Accept", ""):
            return answer
        try:
            view = read(answer.body)
        except ViewError as error:
            _LOG.warning("the leader's page cannot be read", extra={"error": str(error)})
            return _OTHER_VERSION
        text = await self._knowledge.turns.finish(document(view))
        return Answer(HTTPStatus.OK, text.encode("utf-8", "backslashreplace"), html=True)

    async def _answer(self, caller: Caller, question: str) -> Answer:
        if self._leads():
            return await self._here(caller, question)
        body = orjson.dumps({"caller": caller.shown, "question": question})
        told = await self._leader.pass_on(LEADER_PATH, body)
        return (
            Answer(*told) if isinstance(told, tuple) else Answer.error(HTTPStatus.SERVICE_UNAVAILABLE, told)
        )

    async def _here(self, caller: Caller, question: str) -> Answer:
        match question.split("/"):
            case ["pods", namespace, name] if namespace and name:
                found: Any = await self._knowledge.of_pod(caller, namespace, name)
            case ["books"]:
                found = await self._knowledge.of_books(caller)
            case [page, *_] if self._pages is not None and page.startswith(f"{_PAGE}?"):
                found = await self._pages.of(caller, question.removeprefix(f"{_PAGE}?"))
            case _:
                return _QUESTIONS
        if isinstance(found, Refused):
            return Answer.error(found.status, found.text)
        return Answer.of(found)

    def _allowance(self, caller: Caller) -> Allowance:
        now = asyncio.get_running_loop().time()
        found = self._allowances.get(caller.user, now)
        if found is None:
            found = Allowance(PER_S, BURST)
            self._allowances.put(caller.user, found, now)
        return found


_WHO: Final = Answer.error(
    HTTPStatus.UNAUTHORIZED,
    f"show the token of your kubeconfig: Authorization: Bearer, or {TOKEN_HEADER} by way of the API server",
)
_STRANGER: Final = Answer.error(HTTPStatus.UNAUTHORIZED, "the API server does not know this token")
_TOO_OFTEN: Final = Answer.error(
    HTTPStatus.TOO_MANY_REQUESTS, f"more than {PER_S:g} questions in a second; try again in a moment"
)
_BUSY: Final = Answer.error(HTTPStatus.SERVICE_UNAVAILABLE, "too much is asked at the moment; try again")
_UNJUDGED: Final = Answer.error(
    HTTPStatus.SERVICE_UNAVAILABLE, "the API server did not say what you may see; try again"
)
_NOBODY: Final = Answer.error(HTTPStatus.SERVICE_UNAVAILABLE, "no replica leads at the moment; try again")
_OTHER_VERSION: Final = Answer.error(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the leader is of another version than the replica that you asked; try again",
)
_QUESTIONS: Final = Answer.error(
    HTTPStatus.NOT_FOUND, f"what is answered: {ANSWERS_ROOT}pods/NAMESPACE/NAME and {ANSWERS_ROOT}books"
)


def _unjudged(error: KubeError) -> Answer:
    _LOG.warning("a caller could not be judged", extra={"error": str(error)})
    return _UNJUDGED


def _token(request: web.Request) -> str:
    own = request.headers.get(TOKEN_HEADER, "")
    kind, _, shown = request.headers.get("Authorization", "").partition(" ")
    return own or (shown.strip() if kind.lower() == "bearer" else "")


def _close(answer: Awaitable[Answer]) -> None:
    """Of a coroutine that nobody came to."""
    close = getattr(answer, "close", None)
    if close is not None:
        close()
