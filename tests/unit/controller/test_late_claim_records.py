"""The claims that a pod runs with are put on record whenever it shows that they are missing, and by whatever it shows."""

import asyncio
from typing import Any

import pytest

from controller import queue_records
from core import names
from core.objects import Pod
from core.queues.ledger import Ledger
from core.queues.queue_records import late_records
from kube import errors
from tests.builders import a_pod
from tests.builders.claims import a_claim
from tests.builders.pods import PodBuilder
from tests.unit.controller.cluster import show
from tests.unit.controller.test_queue_records import World

pytestmark = pytest.mark.looptime

RECORD = '{"dev":{"uid":"uid-mine","unasked":"true","deviceclass/gpu":"1"}}'
DOWN = errors.ServerError(500, "InternalError", "down", None, None)


def claiming(version: int = 1, phase: str = "Running", name: str = "p", claim: str = "mine") -> PodBuilder:
    """It came with its node, past the gate."""
    pod = a_pod(name).claim("dev", name=claim).in_queue("q").bound_to("n", phase=phase)
    return pod.put("metadata", "resourceVersion", value=str(version))


def shows_claim(world: World, name: str = "mine") -> None:
    show(world.caches.claims, f"ml/{name}", a_claim(name).uid(f"uid-{name}").exactly("r", "gpu").view())


def claims_written(world: World) -> list[Any]:
    annotations = [write.body["metadata"]["annotations"] for write in world.writer.writes]
    return [each[names.CLAIMS_ANNOTATION] for each in annotations if names.CLAIMS_ANNOTATION in each]


@pytest.mark.parametrize("shown_between", [True, False], ids=["one by one", "by a list"])
async def test_claims_that_are_missing_where_the_queue_is_on_record_are_written(shown_between: bool) -> None:
    world = World(claiming(1, "Pending"))
    shows_claim(world)
    async with world.leading():
        assert len(world.writer.writes) == 1
        if shown_between:
            world.shows(claiming(2, "Pending").charged("q"))
        world.shows(claiming(3).charged("q"))
        await asyncio.sleep(60)
    assert len(claims_written(world)) == 1


async def test_what_is_found_missing_while_a_write_is_under_way_is_written_after_it() -> None:
    world = World(claiming(1, "Pending"))
    shows_claim(world)
    world.answers(claiming(2, "Pending").charged("q"))
    world.writer.latency_s = lambda _name: 2.0
    async with world.begun():
        await asyncio.sleep(1)
        world.shows(claiming(3).charged("q"))
        await asyncio.sleep(1.5)
        world.answers(claiming(4).charged("q").annotation(names.CLAIMS_ANNOTATION, RECORD))
        await asyncio.sleep(3600)
    assert claims_written(world) == [RECORD]
    assert len(world.writer.writes) == 2


async def test_a_write_that_fails_takes_nothing_from_a_pod_that_was_complete_meanwhile() -> None:
    """It was stored, and its answer lost; later somebody takes the record away."""
    world = World(claiming().charged("q"))
    shows_claim(world)
    world.writer.answers.append(DOWN)
    world.writer.latency_s = lambda _name: 2.0
    async with world.begun():
        await asyncio.sleep(1)
        world.shows(claiming(2).charged("q").annotation(names.CLAIMS_ANNOTATION, RECORD))
        await asyncio.sleep(60)
        world.shows(claiming(3).charged("q"))
        await asyncio.sleep(60)
    assert claims_written(world) == [RECORD, RECORD]


@pytest.mark.parametrize("version", [1, 2], ids=["which changes nothing", "which changes it"])
async def test_a_record_that_does_not_stay_is_written_less_and_less_often(version: int) -> None:
    """A stranger's webhook takes it out of every write."""
    world = World(claiming().charged("q"))
    shows_claim(world)
    world.answers(claiming(version).charged("q"))
    async with world.leading():
        assert 0 <= world.waited_s < 1
        await asyncio.sleep(3600)
        assert 12 <= len(claims_written(world)) <= 22
        world.answers(claiming(9).charged("q").annotation(names.CLAIMS_ANNOTATION, RECORD))
        await asyncio.sleep(600)
        written = len(claims_written(world))
        await asyncio.sleep(3600)
        assert len(claims_written(world)) == written


async def test_a_claim_that_comes_into_view_after_the_pod_is_put_on_record() -> None:
    world = World(claiming().charged("q"), claiming(name="other", claim="another").charged("q"))
    async with world.leading():
        shows_claim(world)
        await asyncio.sleep(3600)
    assert claims_written(world) == [RECORD]


async def test_a_claim_is_put_on_record_of_all_that_refer_to_it() -> None:
    world = World(*(claiming(name=f"p{number}").charged("q") for number in range(3)))
    async with world.leading():
        shows_claim(world)
        await asyncio.sleep(60)
    assert sorted(write.name for write in world.writer.writes) == ["p0", "p1", "p2"]


async def test_a_claim_that_goes_before_it_is_written_is_written_no_more() -> None:
    world = World(claiming().charged("q"))
    world.writer.answers.append(DOWN)
    async with world.leading():
        shows_claim(world)
        await asyncio.sleep(0.5)
        show(world.caches.claims, "ml/mine", None)
        await asyncio.sleep(60)
        assert len(claims_written(world)) == 1
        shows_claim(world)
        await asyncio.sleep(60)
        assert len(claims_written(world)) == 2


async def test_a_pod_that_goes_while_it_is_written_is_forgotten() -> None:
    world = World(claiming().charged("q"))
    world.writer.answers.append(DOWN)
    world.writer.latency_s = lambda _name: 2.0
    async with world.begun():
        shows_claim(world)
        await asyncio.sleep(1)
        world.shows(None)
        show(world.caches.claims, "ml/mine", None)
        await asyncio.sleep(60)
        shows_claim(world)
        await asyncio.sleep(60)
        assert len(world.writer.writes) == 1
        world.shows(claiming(2).charged("q"))
        await asyncio.sleep(60)
    assert len(world.writer.writes) == 2


async def test_who_does_not_lead_any_more_writes_no_claims() -> None:
    world = World(claiming().charged("q"))
    async with world.leading():
        pass
    shows_claim(world)
    await asyncio.sleep(60)
    assert world.writer.writes == []
    async with world.leading():
        assert claims_written(world) == [RECORD], "the next term finds it"


async def test_a_claim_that_very_many_pods_hold_has_none_of_them_looked_at_in_its_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pods = [claiming(name=f"p{number}").charged("q") for number in range(500)]
    world = World(*pods)
    seen: list[str] = []

    def look(pod: Pod, ledger: Ledger) -> dict[str, str]:
        seen.append(pod.uid)
        return late_records(pod, ledger)

    async with world.leading():
        monkeypatch.setattr(queue_records, "late_records", look)
        shows_claim(world)
        assert seen == []
        most = before = 0
        while len(seen) < len(pods):
            await asyncio.sleep(0)
            most, before = max(most, len(seen) - before), len(seen)
        assert most < len(pods) // 2
        await asyncio.sleep(60)
    assert len(claims_written(world)) == len(pods)
