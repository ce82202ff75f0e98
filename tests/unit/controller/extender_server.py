"""A running extender over caches of one full node, and a question that it refuses."""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from controller.caches import Caches
from controller.extender import Extender
from controller.extender_metrics import ExtenderMetrics
from core.extender.enqueue import Vote
from core.settings import Settings
from kube.intake import Intake
from kube.serving import application
from kube.turns import Turns
from tests.unit.controller.cluster import caches
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import ALLOCATED, cpu_pod, resreq, session_node, task

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
