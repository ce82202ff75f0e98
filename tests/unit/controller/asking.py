"""A controller's answers port over objects at hand, and an API server that knows some tokens and some rights."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.answering import BURST, PER_S, Answers
from controller.knowledge import Knowledge
from controller.metrics import Metrics
from core.names import ANSWERS_ROOT
from core.plan.lift import Planner
from core.plan.offline import decisions
from core.steps import finish
from kube.callers import Callers
from kube.client import Client, Json
from kube.errors import KubeError
from kube.resources import TOKEN_REVIEWS, Resource
from kube.serving import Server, application
from tests.builders import a_node, a_pod, a_queue
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder

QUEUES = "scheduling.volcano.sh"
MINE, OTHERS = "ml", "research"


@dataclass
class Judge:
    """Answers reviews. A right is verb, resource, namespace, name, with `*` for any."""

    tokens: dict[str, str] = field(default_factory=lambda: {"good": "ann"})
    rights: set[tuple[str, str, str, str, str]] = field(default_factory=set)
    reviews: list[str] = field(default_factory=list)
    fails: KubeError | None = None

    async def create(self, resource: Resource, body: Json, **_: Any) -> Json:
        if self.fails is not None:
            raise self.fails
        self.reviews.append(resource.plural)
        spec = body["spec"]
        if resource == TOKEN_REVIEWS:
            user = self.tokens.get(spec["token"])
            if user is None:
                return {"status": {"authenticated": False}}
            return {"status": {"authenticated": True, "user": {"username": user, "groups": ["g"]}}}
        asked = spec["resourceAttributes"]
        wanted = (spec["user"], asked["verb"], asked["resource"], asked["namespace"], asked["name"])
        allowed = any(
            all(part in ("*", want) for part, want in zip(right, wanted, strict=True))
            for right in self.rights
        )
        return {"status": {"allowed": allowed}}


class NoLeader:
    """A link to nobody; what was passed on."""

    def __init__(self, answer: tuple[int, bytes] | str = "no replica of the controller leads now") -> None:
        self.answer = answer
        self.passed: list[bytes] = []

    async def pass_on(self, path: str, body: bytes) -> tuple[int, bytes] | str:
        assert path == "/leader/answers"
        self.passed.append(body)
        return self.answer


class Asked:
    """A leader with a queue of two cards, both of which others use, and one own pod that waits behind one of theirs."""

    def __init__(self, *, leads: bool = True, link: NoLeader | None = None) -> None:
        self.leads = leads
        self.judge = Judge()
        self.caches = caches(
            [a_node("n").card("A", 8).view()],
            [
                a_pod("theirs", namespace=OTHERS)
                .gpu(1)
                .card("A")
                .in_queue("q")
                .assigned({"A": 1})
                .bound_to("n")
                .view(),
                a_pod("own", namespace=MINE)
                .gpu(1)
                .card("A")
                .in_queue("q")
                .assigned({"A": 1})
                .bound_to("n")
                .view(),
                a_pod("before", namespace=OTHERS).gpu(1).card("A").in_queue("q").gated().priority(5).view(),
                a_pod("waits", namespace=MINE).gpu(1).card("A").in_queue("q").gated().view(),
                a_pod("cpu", namespace=MINE).view(),
            ],
        )
        show(self.caches.queues, "q", a_queue("q").cards({"A": 2}).view())
        finish(self.caches.ledger.settle())
        self.announcements = Announcements(Recorder())
        self.metrics = Metrics(CollectorRegistry())
        self.among_replicas = application()
        callers = Callers(cast("Client", self.judge))
        self.knowledge = Knowledge(self.caches, self.announcements, callers, self.metrics, "leader-1")
        self.answers = Answers(self.knowledge, lambda: self.leads, link or NoLeader(), self.among_replicas)

    def decide(self) -> None:
        """One pass; needs a running loop."""
        for decision in decisions(self.caches.ledger, Planner(self.caches.ledger)):
            self.announcements.held(decision)  # type: ignore[arg-type]  # nobody can be lifted

    @asynccontextmanager
    async def port(self, app: web.Application | None = None) -> AsyncIterator["Port"]:
        """The port of the answers; with `app` another one."""
        served = app
        if served is None:
            served = application()
            self.answers.add_routes(served)
        server = Server(served, "127.0.0.1", 0)
        await server.start()
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
                yield Port(session)
        finally:
            await server.stop()


class Port:
    """Asks."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def get(self, question: str, token: str = "good", **more: Any) -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.get(ANSWERS_ROOT + question, headers=headers, **more) as response:
            return response.status, await response.json()


async def asks_too_often(ask: Callable[[], Awaitable[int]], *, answered: int) -> None:
    """One caller is answered with this status until the burst is used up, and for no more questions than their time allows."""
    now = asyncio.get_running_loop().time
    begun, passed = now(), 0
    while (status := await ask()) != HTTPStatus.TOO_MANY_REQUESTS:
        assert status == answered
        passed += 1
        assert passed <= BURST + PER_S * (now() - begun) + 1
    assert passed >= BURST
