"""The admission endpoint: what becomes of bodies that are too large, too many, too slow, or merely large."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from core.admission.request import AdmissionRequest, Decision
from kube import bigjson
from kube.admission.endpoint import add_review_route
from kube.admission.metrics import ReviewMetrics
from kube.bigjson import PIECE, WHOLE
from kube.intake import Intake
from kube.serving import application
from tests.fakes.bodies import Sending

MIB = 2**20
JSON = {"Content-Type": "application/json"}


class Endpoint:
    """One path that allows everything."""

    def __init__(self, bodies: Intake) -> None:
        self.registry, self.seen = CollectorRegistry(), list[AdmissionRequest]()
        app = application()
        add_review_route(
            app,
            "/x",
            serves=lambda _: True,
            answer=self._answer,
            metrics=ReviewMetrics(self.registry),
            bodies=bodies,
        )
        (route,) = app.router.routes()
        self._handle: Callable[[web.Request], Awaitable[Any]] = route.handler

    async def _answer(self, request: AdmissionRequest) -> Decision:
        self.seen.append(request)
        return Decision()

    async def status(self, sending: Sending) -> tuple[int, dict[str, str]]:
        response = await self._handle(sending.request)
        return response.status, dict(response.headers)

    def failed(self, code: int) -> float:
        labels = {"path": "/x", "verdict": "failed", "code": str(code)}
        return self.registry.get_sample_value("cardquota_admission_requests_total", labels) or 0.0


def review(weight: int = 0) -> bytes:
    """A review of a pod of about this weight in bytes."""
    env = [{"name": f"n{number}", "value": "v" * 1000} for number in range(weight // 1000)]
    request = {
        "uid": "u",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "kind": {"kind": "Pod"},
        "object": {"metadata": {"name": "p"}, "spec": {"containers": [{"env": env}]}},
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def sending(body: bytes) -> Sending:
    return Sending(len(body), **JSON).sends(body).ends()


@pytest.mark.parametrize("weight", [0, WHOLE, 2 * MIB])
async def test_large_reviews_are_read_as_small_ones_but_piece_by_piece(
    weight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    parsed = bigjson._parsed

    def noted(body: bigjson.Body, start: int, end: int) -> Any:
        pieces.append(end - start)
        return parsed(body, start, end)

    monkeypatch.setattr(bigjson, "_parsed", noted)
    endpoint, body = Endpoint(Intake()), review(weight)
    assert (await endpoint.status(sending(body)))[0] == 200
    assert (len(pieces) > weight // PIECE) == bool(weight)
    assert max(pieces, default=0) <= PIECE
    (seen,) = endpoint.seen
    assert seen.object == orjson.loads(body)["request"]["object"]


async def test_a_large_body_that_is_no_review_is_a_clients_mistake() -> None:
    endpoint = Endpoint(Intake())
    for body in (b"[" + b"1," * MIB, b"[" + b'"x",' * 60_000 + b"1]" + b" " * WHOLE, b"{" * MIB):
        assert (await endpoint.status(sending(body)))[0] == 400


async def test_a_body_beyond_the_limit_of_the_application_is_refused() -> None:
    endpoint = Endpoint(Intake())
    assert (await endpoint.status(Sending(8 * MIB + 1, **JSON)))[0] == 413
    assert endpoint.failed(413) == 1


async def test_beyond_the_limit_of_the_process_the_review_that_arrives_longest_is_asked_to_come_again() -> (
    None
):
    endpoint, held = Endpoint(Intake(MIB)), Sending(MIB, **JSON)
    held.sends(b"x" * (MIB - 1))
    longest = asyncio.create_task(endpoint.status(held))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (await endpoint.status(sending(review())))[0] == 200
    status, headers = await longest
    assert (status, headers["Retry-After"]) == (503, "1")
    assert endpoint.failed(503) == 1
    assert (await endpoint.status(sending(review())))[0] == 200


@pytest.mark.looptime
async def test_a_body_that_does_not_come_is_given_up() -> None:
    endpoint = Endpoint(Intake())
    async with asyncio.timeout(60.0):
        assert (await endpoint.status(Sending(100, **JSON).sends(b"{")))[0] == 408
    assert endpoint.failed(408) == 1
