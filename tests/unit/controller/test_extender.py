"""The extender endpoints over HTTP: what schedulers see of limits, readiness, mistakes and load."""

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest
from prometheus_client import CollectorRegistry

from controller.extender import Extender
from controller.extender_listener import listening
from controller.extender_metrics import ExtenderMetrics
from core import reasons
from core.settings import parse
from kube.intake import Intake
from kube.serving import Server, application
from tests.builders import a_pod
from tests.builders.objects import a_queue
from tests.fakes.bodies import Sending, sent
from tests.unit.controller.cluster import show
from tests.unit.controller.extender_server import MIB, PREDICATE, REFUSED, filled, serving
from tests.unit.core.crossquota.ruling import gpu_node
from tests.unit.core.extender.asking import by_name, by_node, cpu_pod, recorded, resreq, task


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
