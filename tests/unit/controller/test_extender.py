"""The extender endpoints over HTTP: what schedulers see of limits, readiness, mistakes and load."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from controller.caches import Caches
from controller.extender import Extender
from controller.extender_listener import listening
from controller.extender_metrics import ExtenderMetrics
from controller.extender_votes import VoteNotes
from core import reasons
from core.extender.enqueue import REJECT, Vote
from core.objects import group
from core.refusal import Refusal
from core.settings import Settings, parse
from kube.intake import Intake
from kube.serving import Server, application
from kube.turns import Turns
from tests.builders import a_pod
from tests.builders.objects import a_group, a_queue
from tests.fakes.apiserver import background
from tests.fakes.bodies import Sending, sent
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import (
    ALLOCATED,
    by_name,
    by_node,
    cpu_pod,
    recorded,
    resreq,
    session_node,
    task,
)

MIB = 2**20
TIGHT = ruled(quota={"cpu": 4})
FULL = cpu_pod("full", cpu=3).bound_to("gpu")
PREDICATE = {
    "task": task(cpu_pod("p"), amounts=resreq(2000)),
    "node": session_node(gpu_node("gpu").build(), task(FULL, status=ALLOCATED, amounts=resreq(3000))),
}
REFUSED = "cpu quota exceeded: required 2, used 3, quota 4"


def filled(settings: Settings = TIGHT, *, synced: bool = True) -> Caches:
    """Caches of one GPU node with a pod of three cores on it."""
    result = caches([gpu_node("gpu").view()], [FULL.view()], settings)
    if synced:
        for informer in result._informers():
            informer._synced.set()
    return result


class Asked:
    """A running server, and what its metrics say."""

    def __init__(
        self, client: "TestClient[web.Request, web.Application]", registry: CollectorRegistry
    ) -> None:
        self.client = client
        self._registry = registry

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status, and the answer: JSON where it is some."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        async with self.client.post(path, data=io.BytesIO(data)) as answer:
            content = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, orjson.loads(content) if is_json else content.decode()

    def counted(self, name: str, **labels: str) -> float:
        return self._registry.get_sample_value(f"cardquota_extender_{name}", labels) or 0.0


@asynccontextmanager
async def serving(
    held: Caches,
    told: Callable[[Vote], None] = lambda _: None,
    *,
    intake: Intake | None = None,
    turns: Turns | None = None,
) -> AsyncIterator[Asked]:
    registry, app = CollectorRegistry(), application()
    extender = Extender(held, ExtenderMetrics(registry), told, intake=intake or Intake(), turns=turns)
    extender.add_kube_routes(app)
    extender.add_volcano_routes(app)
    async with TestClient(TestServer(app)) as client:
        yield Asked(client, registry)


async def test_each_protocol_is_answered_at_its_paths() -> None:
    body = by_name(cpu_pod(cpu=2), "gpu")
    held = filled()
    async with serving(held) as asked:
        status, answer = await asked.post("/kube/filter", body)
        assert (status, answer["FailedNodes"]) == (200, {"gpu": REFUSED})
        assert await asked.post("/kube/prioritize", body) == (200, [{"Host": "gpu", "Score": 0}])
        assert await asked.post("/volcano/predicate", PREDICATE) == (200, {"status": REFUSED, "code": 2})
        prioritize = {"task": PREDICATE["task"], "nodes": [PREDICATE["node"]]}
        scores = {"nodeScore": {"gpu": 0.0}, "errorMessage": ""}
        assert await asked.post("/volcano/prioritize", prioritize) == (200, scores)
        queue = recorded("volcano-queueOverused")
        assert await asked.post("/volcano/queueOverused", queue) == (200, {"overused": False})
        name = queue["queue"]["Name"]
        show(held.queues, name, a_queue(name).cards({"NVIDIA-H20": 1}).view())
        pod = (
            a_pod("over").gpu(2).card("NVIDIA-H20").assigned({"NVIDIA-H20": 2}).charged(name).bound_to("gpu")
        )
        show(held.pods, "ml/over", pod.view())
        assert await asked.post("/volcano/queueOverused", queue) == (200, {"overused": True})
        assert asked.counted("refusals_total", reason=reasons.CROSS_QUOTA_EXCEEDED) == 2
        assert asked.counted("requests_total", path="/kube/filter", outcome="answered") == 1


async def test_nothing_is_let_through_before_the_cluster_is_listed() -> None:
    async with serving(filled(synced=False)) as asked:
        status, answer = await asked.post("/kube/filter", by_name(cpu_pod(), "gpu"))
        assert (status, answer["NodeNames"], answer["Error"]) == (
            200,
            None,
            "cardquota has not listed the cluster yet",
        )
        for path in ("/kube/prioritize", "/volcano/predicate", "/volcano/prioritize"):
            assert (await asked.post(path, PREDICATE))[0] == 503
        assert asked.counted("requests_total", path="/kube/filter", outcome="not-ready") == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"{", "no JSON"), (b"", "no JSON"), ({}, "Pod must be an object"), ([], "JSON object")],
)
async def test_what_is_no_request_is_a_client_error_in_one_line(body: Any, words: str) -> None:
    async with serving(filled()) as asked:
        status, text = await asked.post("/kube/filter", body)
        assert (status, text.count("\n")) == (400, 1)
        assert words in text
        assert asked.counted("requests_total", path="/kube/filter", outcome="failed") == 1


async def test_bodies_of_many_megabytes_are_answered() -> None:
    """Far above what an AdmissionReview may be: a node with all its tasks, or all nodes of a cluster."""
    heavy = gpu_node("gpu").put("status", "images", value=[{"names": ["x" * 1000]}] * 12_000).build()
    async with serving(filled()) as asked:
        body = {**PREDICATE, "node": {**PREDICATE["node"], "Node": heavy}}
        assert len(orjson.dumps(body)) > 10 * MIB
        assert await asked.post("/volcano/predicate", body) == (200, {"status": REFUSED, "code": 2})
        status, answer = await asked.post("/kube/filter", by_node(cpu_pod(cpu=1), heavy))
        assert (status, answer["Nodes"]["items"]) == (200, [heavy])


async def test_a_body_beyond_the_limit_is_refused_by_the_name_of_the_setting() -> None:
    settings = parse({"extender": {"maxBodyBytes": "1Mi"}})[0]
    async with serving(filled(settings)) as asked:
        status, text = await asked.post("/volcano/predicate", b"x" * (MIB + 1))
        assert (status, text) == (413, "the body is larger than extender.maxBodyBytes, 1048576 bytes\n")


async def test_beyond_what_may_be_here_at_a_time_a_scheduler_is_asked_to_come_again() -> None:
    intake = Intake(MIB)
    async with serving(filled(), intake=intake) as asked, intake.body(sent(b"x" * MIB), MIB):
        async with asked.client.post("/volcano/predicate", data=b"{}") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert asked.counted("requests_total", path="/volcano/predicate", outcome="failed") == 1
    async with serving(filled(), intake=intake) as asked:
        assert (await asked.post("/volcano/predicate", PREDICATE))[0] == 200
    assert intake.held == 0


@pytest.mark.looptime
async def test_a_scheduler_that_does_not_send_its_body_is_given_up() -> None:
    app = application()
    Extender(filled(), ExtenderMetrics(CollectorRegistry())).add_kube_routes(app)
    handle = next(route.handler for route in app.router.routes())
    async with asyncio.timeout(60.0):
        answer: Any = await handle(Sending(100).sends(b"{").request)
    assert answer.status == 408


async def test_a_thousand_questions_at_once_are_all_answered_over_a_few_connections() -> None:
    passing = {**PREDICATE, "task": task(cpu_pod("q"), amounts=resreq(1000))}
    async with serving(filled()) as asked:
        url = asked.client.make_url("/volcano/predicate")
        connections = 0

        async def created(*_: Any) -> None:
            nonlocal connections
            connections += 1

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(created)
        connector = aiohttp.TCPConnector(limit=16)
        async with aiohttp.ClientSession(connector=connector, trace_configs=[trace]) as session:

            async def one(body: Any) -> Any:
                async with session.post(url, data=orjson.dumps(body)) as answer:
                    return await answer.json()

            answers = await asyncio.gather(*(one(PREDICATE if n % 2 else passing) for n in range(1000)))
    assert [answer["code"] for answer in answers] == [0, 2] * 500
    assert connections <= 16


async def test_an_error_of_ours_takes_no_more_than_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    held = filled()
    async with serving(held) as asked:
        with monkeypatch.context() as broken:
            broken.setattr(held.guests, "quota", lambda _: 1 / 0)
            status, text = await asked.post("/kube/filter", by_name(cpu_pod(), "gpu"))
            assert (status, text) == (500, "the question failed unexpectedly\n")
        assert (await asked.post("/kube/filter", by_name(cpu_pod(), "gpu")))[0] == 200


async def test_events_of_the_watch_change_the_answer() -> None:
    held = filled()
    body = by_name(cpu_pod(cpu=2), "gpu")
    async with serving(held) as asked:
        assert (await asked.post("/kube/filter", body))[1]["NodeNames"] == []
        show(held.pods, "ml/full", None)
        assert (await asked.post("/kube/filter", body))[1]["NodeNames"] == ["gpu"]
        show(held.nodes, "gpu", gpu_node("gpu").annotation("volcano.sh/crossquota-cpu", "1").view())
        assert (await asked.post("/kube/filter", body))[1]["NodeNames"] == []


async def test_the_plain_port_serves_volcano_and_nothing_else(unused_tcp_port: int) -> None:
    extender = Extender(filled(), ExtenderMetrics(CollectorRegistry()))
    base = f"http://127.0.0.1:{unused_tcp_port}"
    opened = listening(extender.add_volcano_routes, "127.0.0.1", unused_tcp_port, name="extender")
    async with opened, aiohttp.ClientSession() as session:
        async with session.post(f"{base}/volcano/predicate", data=orjson.dumps(PREDICATE)) as answer:
            assert await answer.json() == {"status": REFUSED, "code": 2}
        for path in ("/kube/filter", "/mutate/bindings", "/metrics"):
            async with session.post(base + path, data=b"{}") as answer:
                assert answer.status == 404


@pytest.mark.parametrize("opened", [False, True])
async def test_without_a_plain_port_none_is_opened(
    opened: bool, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    extender, started = Extender(filled(), ExtenderMetrics(CollectorRegistry())), list[str]()
    start = Server.start

    async def noted(server: Server) -> None:
        started.append("server")
        await start(server)

    monkeypatch.setattr(Server, "start", noted)
    port = unused_tcp_port if opened else None
    async with listening(extender.add_volcano_routes, "127.0.0.1", port, name="extender"):
        assert started == ["server"] * opened


# -- what is said about jobs ------------------------------------------------------------------------------------------


async def test_every_vote_is_told() -> None:
    held, votes = filled(Settings()), list[Vote]()
    show(held.queues, "research", a_queue("research").cards({"NVIDIA-H20": 1}).view())
    body = recorded("volcano-jobEnqueueable")
    asking = group.project(body["job"]["PodGroup"])
    show(held.groups, asking.key, asking)
    async with serving(held, votes.append) as asked:
        assert await asked.post("/volcano/jobEnqueueable", body) == (200, {"status": -1})
    (vote,) = votes
    assert vote.group.name.startswith("train-")
    assert vote.why is not None


async def test_jobs_that_the_cluster_does_not_have_get_no_vote_and_leave_nothing_behind() -> None:
    """Anybody on the port could else hold a queue's room for them, or let the process grow."""
    held, votes = filled(Settings()), list[Vote]()
    show(held.queues, "research", a_queue("research").cards({"NVIDIA-H20": 2}).view())
    body = recorded("volcano-jobEnqueueable")
    real = group.project(body["job"]["PodGroup"])
    extender = Extender(held, ExtenderMetrics(CollectorRegistry()), votes.append)
    for number in range(50):
        body["job"]["PodGroup"]["metadata"]["name"] = f"made-up-{number}"
        assert await extender._job_enqueueable(body) == {"status": 0}
    body["job"]["PodGroup"]["metadata"]["name"] = real.name
    show(held.groups, real.key, real)
    body["job"]["PodGroup"]["metadata"]["uid"] = "of-another-one"
    assert await extender._job_enqueueable(body) == {"status": 0}
    assert extender._promises._kept == {}
    body["job"]["PodGroup"]["metadata"]["uid"] = real.uid
    body["job"]["PodGroup"]["metadata"]["annotations"]["volcano.sh/card.request"] = "{}"
    assert await extender._job_enqueueable(body) == {"status": 1}
    (promise,) = extender._promises._kept.values()
    assert promise.amounts["NVIDIA-H20"] == 2000, "what the cluster's own PodGroup declares"
    show(held.groups, real.key, None)
    assert extender._promises._kept == {}


def short(text: str) -> Vote:
    return Vote(REJECT, a_group("g").view(), Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, text))


@pytest.mark.looptime
async def test_the_reason_is_said_once_on_the_group_until_it_changes() -> None:
    """The scheduler asks each second; a job that is let in right afterwards hears nothing, nor does any twice an hour."""
    recorder = Recorder()
    notes = VoteNotes(recorder)
    said = ("PodGroup g", reasons.INSUFFICIENT_SCALAR_QUOTA)
    permit = Vote(1, a_group("g").view())
    async with background(notes.run()):
        for vote in (short("a 1"), permit, short("a 1"), short("a 2"), short("a 3"), short("b 1"), permit):
            notes.told(vote)
            await asyncio.sleep(0.9)
        assert recorder.emitted == [(*said, "a 2")]
        for vote in (short("b 1"), short("b 2"), short("b 3"), permit, short("b 4"), short("b 4")):
            notes.told(vote)
            await asyncio.sleep(0.9)
        assert recorder.emitted == [(*said, "a 2"), (*said, "b 2")]
        await asyncio.sleep(3600)
        assert recorder.emitted[2:] == [(*said, "b 4")]


@pytest.mark.looptime
async def test_a_group_that_is_made_anew_hears_it_again() -> None:
    recorder = Recorder()
    notes = VoteNotes(recorder)
    async with background(notes.run()):
        notes.told(short("a"))
        await asyncio.sleep(2)
        notes.group_changed(a_group("g").view(), None)
        notes.told(short("a"))
        await asyncio.sleep(2)
    assert len(recorder.emitted) == 2


@pytest.mark.looptime
async def test_a_vote_on_a_group_that_is_gone_leaves_nothing_behind() -> None:
    recorder, there = Recorder(), True
    notes = VoteNotes(recorder, exists=lambda _: there)
    notes.told(short("a"))
    assert len(notes._sayings) == 1
    there = False
    notes.group_changed(a_group("g").view(), None)
    notes.told(short("a"))
    assert len(notes._sayings) == 0
