"""The definition of Queue gets spec.dra from the leader wherever it is missing, and nobody is fought over it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.metrics import Metrics
from controller.queue_definition import QueueDefinitionKeeper
from core import reasons
from core.dra.schema import QUEUE_CRD, SPEC_DRA, project
from core.settings import Settings
from kube import errors
from tests.unit.controller.cluster import NoApi, caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

GAUGE = b"cardquota_dra_crd_field_present"


def definition(*, extended: bool) -> Any:
    """The view of a definition with one version."""
    spec = {"properties": {"weight": {}, **({"dra": SPEC_DRA} if extended else {})}}
    version = {"name": "v1beta1", "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
    return project({"metadata": {"name": QUEUE_CRD, "uid": "u"}, "spec": {"versions": [version]}})


class Source(Writer, NoApi):
    """Writes are recorded; nothing is listed or watched."""


class World:
    def __init__(self, **dra: str) -> None:
        self.source, self.recorder, self.registry = Source(), Recorder(), CollectorRegistry()
        self.caches = caches()
        settings = Settings.model_validate({"dra": dra})
        metrics = Metrics(self.registry)
        self.keeper = QueueDefinitionKeeper(
            self.source, self.caches, self.recorder, metrics, settings, Random(1)
        )

    def shows(self, *, extended: bool) -> None:
        show(self.keeper.informer, QUEUE_CRD, definition(extended=extended))

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.keeper.run(term()))
        await asyncio.sleep(0.1)
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    def writes(self) -> int:
        return len(self.source.writes)

    def present(self) -> float | None:
        lines = [line for line in generate_latest(self.registry).splitlines() if line.startswith(GAUGE)]
        return float(lines[0].split()[1]) if lines else None


async def test_the_field_is_added_once_and_that_is_said_on_the_definition() -> None:
    world = World()
    world.shows(extended=False)
    async with world.leading():
        (write,) = world.source.writes
        assert (write.name, write.field_manager, write.subresource) == (QUEUE_CRD, "cardquota", None)
        assert [operation["op"] for operation in write.body] == ["test", "add"]
        world.shows(extended=True)
        await asyncio.sleep(1000)
        assert world.writes() == 1
    ((about, reason, _),) = world.recorder.emitted
    assert (about, reason) == (f"CustomResourceDefinition {QUEUE_CRD}", reasons.QUEUE_DEFINITION_EXTENDED)


async def test_a_definition_that_has_the_field_is_left_alone_until_it_is_gone() -> None:
    world = World()
    world.shows(extended=True)
    async with world.leading():
        await asyncio.sleep(100)
        assert world.writes() == 0
        world.shows(extended=False)
        await asyncio.sleep(0.1)
        assert world.writes() == 1


async def test_somebody_who_takes_it_away_every_second_is_not_fought_at_that_pace() -> None:
    world = World()
    world.shows(extended=True)
    async with world.leading():
        for _ in range(600):
            world.shows(extended=False)
            await asyncio.sleep(0.5)
            world.shows(extended=True)
            await asyncio.sleep(0.5)
        assert 5 <= world.writes() <= 14


async def test_a_write_that_fails_is_repeated_and_not_announced() -> None:
    world = World()
    world.source.answers.append(errors.Forbidden(403, "Forbidden", "no right", None, None))
    world.shows(extended=False)
    async with world.leading():
        assert world.recorder.emitted == []
        await asyncio.sleep(10)
        assert len(world.recorder.emitted) >= 1


async def test_a_write_that_is_put_off_waits_for_as_long_as_the_api_server_asks() -> None:
    world = World()
    world.source.answers.append(errors.Throttled(429, "TooManyRequests", "slow down", None, 30.0))
    world.shows(extended=False)
    async with world.leading():
        await asyncio.sleep(29)
        assert world.writes() == 1
        await asyncio.sleep(2)
        assert world.writes() == 2


async def test_queues_are_read_anew_when_the_field_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they kept there could not be seen, and no watch tells that it can be now. An API server may take its time."""
    world, reads = World(), 0

    async def refresh() -> None:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0.1)

    monkeypatch.setattr(world.caches.queues, "refresh", refresh)
    _, reread = world.keeper.runnables
    task = asyncio.ensure_future(reread())
    world.shows(extended=True)
    await asyncio.sleep(100)
    assert reads == 0, "nothing was hidden"
    world.shows(extended=False)
    world.shows(extended=True)
    await asyncio.sleep(100)
    assert reads == 3
    task.cancel()


async def test_the_gauge_shows_whether_the_field_is_there() -> None:
    world = World()
    assert world.present() == 0
    world.shows(extended=False)
    assert world.present() == 0
    world.shows(extended=True)
    assert world.present() == 1


@pytest.mark.parametrize("settings", [{"queueCRD": "leave"}])
async def test_where_the_definition_is_to_be_left_it_is_not_even_looked_at(settings: dict[str, str]) -> None:
    world = World(**settings)
    assert world.keeper.runnables == ()
    assert world.present() is None
    async with world.leading():
        await asyncio.sleep(100)
        assert world.writes() == 0
