"""Large questions of schedulers: answered as small ones are, in slices between which others are served."""

import asyncio
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from controller.extender import Extender
from controller.extender_metrics import ExtenderMetrics
from core.extender import volcano
from kube import bigjson
from tests.fakes.ticking import Ticking
from tests.unit.controller.cluster import show
from tests.unit.controller.extender_server import MIB, PREDICATE, REFUSED, filled, serving
from tests.unit.core.crossquota.ruling import gpu_node
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


async def test_others_are_served_while_many_nodes_are_judged() -> None:
    names = [f"n{number}" for number in range(1000)]
    held, clock = filled(), Ticking()
    turns = clock.turns
    for name in names:
        show(held.nodes, name, gpu_node(name).view())
    extender = Extender(held, ExtenderMetrics(CollectorRegistry()), turns=turns)
    async with clock.beside():
        question = by_name(cpu_pod(cpu=2), *names)
        answer = await extender._filter(await turns.finish(extender._verdicts(question)))
        assert len(await turns.finish(extender._scores(question))) == 1000
    assert len(answer["NodeNames"]) == 1000
    assert clock.readings > 3000, "a step for each node that is judged, told and scored"
    assert clock.longest <= 7


async def test_others_are_served_while_the_tasks_of_a_node_are_counted() -> None:
    tasks = [task(cpu_pod(f"p{n}", cpu=1), status=ALLOCATED, amounts=resreq(1)) for n in range(500)]
    body = {**PREDICATE, "node": session_node(gpu_node("gpu").build(), *tasks)}
    clock = Ticking()
    turns = clock.turns
    extender = Extender(filled(), ExtenderMetrics(CollectorRegistry()), turns=turns)
    async with clock.beside():
        assert await turns.finish(extender._against(body)) == ()
        question = {"task": body["task"], "nodes": [body["node"]]}
        await turns.finish(extender._volcano_scores(question))
    assert clock.readings > 1000
    assert clock.longest <= 7


NODES = 1500


def all_nodes() -> dict[str, Any]:
    """A question about every node of a cluster, of nearly 16 MiB; none of them but `gpu` is out of cores."""
    images = [{"names": [f"registry/image@sha256:{number:064}"], "sizeBytes": 1} for number in range(92)]
    heavy = [
        gpu_node(name).put("status", "images", value=images).build()
        for name in ("gpu", *(f"n{number}" for number in range(1, NODES)))
    ]
    return by_node(cpu_pod(cpu=2), *heavy)


async def test_others_are_served_while_a_body_of_16_mebibytes_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces: list[int] = []
    parsed = bigjson._parsed

    def noted(body: bigjson.Body, start: int, end: int) -> Any:
        pieces.append(end - start)
        return parsed(body, start, end)

    monkeypatch.setattr(bigjson, "_parsed", noted)
    clock, question = Ticking(), all_nodes()
    body = orjson.dumps(question)
    assert 15 * MIB < len(body) <= 16 * MIB
    async with serving(filled(), turns=clock.turns) as asked, clock.beside():
        status, answer = await asked.post("/kube/filter", body)
        steps = clock.readings
        assert (await asked.post("/kube/prioritize", body))[0] == 200
    assert (status, answer["FailedNodes"]) == (200, {"gpu": REFUSED})
    assert answer["Nodes"]["items"] == question["Nodes"]["items"][1:], "nodes go back as they came"
    assert max(pieces) <= bigjson.PIECE
    assert steps > 6 * NODES, (
        "a step at least for each that is read, judged, told, sent back, written and let go"
    )
    assert clock.longest <= 7


async def test_a_single_node_of_megabytes_goes_back_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [{"names": ["x" * 2000], "sizeBytes": number} for number in range(2000)]
    question = by_node(cpu_pod(cpu=2), gpu_node("n").put("status", "images", value=images).build())
    body, written, pieces = orjson.dumps(question), orjson.dumps, list[int]()

    def noted(value: Any) -> bytes:
        pieces.append(len(written(value)))
        return written(value)

    clock = Ticking()
    async with serving(filled(), turns=clock.turns) as asked, clock.beside():
        monkeypatch.setattr(orjson, "dumps", noted)
        status, answer = await asked.post("/kube/filter", body)
    assert (status, answer["Nodes"]["items"]) == (200, question["Nodes"]["items"])
    assert max(pieces) <= bigjson.PIECE
    # The clock is read for each step, and once more where a slice begins, which has four of them.
    assert clock.readings > 5 * len(images), "each is read in a step, written in two and let go in one"
    assert clock.longest <= 7


async def test_a_large_body_is_answered_as_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = {
        "/kube/filter": by_node(cpu_pod(cpu=2), gpu_node("gpu").build(), gpu_node("n").build()),
        "/kube/prioritize": by_name(cpu_pod(cpu=2), "gpu", "n"),
        "/volcano/predicate": PREDICATE,
        "/volcano/prioritize": {"task": PREDICATE["task"], "nodes": [PREDICATE["node"]]},
        "/volcano/queueOverused": recorded("volcano-queueOverused"),
    }
    async with serving(filled()) as asked:
        small = [await asked.post(path, body) for path, body in bodies.items()]
        monkeypatch.setattr(bigjson, "WHOLE", 1)
        monkeypatch.setattr(bigjson, "PIECE", 64)
        assert [await asked.post(path, body) for path, body in bodies.items()] == small


async def test_of_many_questions_each_is_read_when_its_turn_comes_and_looked_into_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were all read first, all would lie there in pieces: that is memory, work for the collector, and the last waits twice."""
    steps: list[str] = []
    predicate, parsed = volcano.predicate, bigjson._parsed

    def read(*given: Any) -> Any:
        steps.append("read")
        return parsed(*given)

    def looked(*given: Any) -> Any:
        steps.append("looked")
        return predicate(*given)

    monkeypatch.setattr(bigjson, "_parsed", read)
    monkeypatch.setattr(volcano, "predicate", looked)
    async with serving(filled()) as asked:
        answers = await asyncio.gather(*(asked.post("/volcano/predicate", PREDICATE) for _ in range(10)))
    assert {status for status, _ in answers} == {200}
    assert steps == ["read", "looked"] * 10
