"""Pods that were let in without a record of their queue: fixed at once, written side by side, held up by nobody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controller.queue_records import FIRST_S, QueueRecords
from core import names
from kube import errors
from kube.lease import Term
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Writer, term

pytestmark = pytest.mark.looptime

DOWN = errors.ServerError(500, "InternalError", 'failed calling webhook "x.example"', None, None)
CHANGED = errors.Conflict(409, "Conflict", "changed", None, None)


def old(name: str, namespace: str = "ml", *, version: int = 1) -> PodBuilder:
    """As an earlier version let it in."""
    pod = a_pod(name, namespace=namespace).card("A").gpu(1).in_group("g").assigned({"A": 1}).bound_to("n")
    return pod.put("metadata", "resourceVersion", value=str(version))


class World:
    def __init__(self, *pods: PodBuilder) -> None:
        self.caches = caches([a_node("n").card("A", 500).view()], [pod.view() for pod in pods])
        for queue in ("q", "other"):
            show(self.caches.queues, queue, a_queue(queue).cards({"A": 9}).view())
        self.names_queue("q")
        self.writer = Writer()
        self.records = QueueRecords(self.writer, self.caches)
        self.waited_s = -1.0

    def names_queue(self, queue: str) -> None:
        """The PodGroup of all pods names a queue."""
        for namespace in ("ml", "other"):
            show(
                self.caches.groups,
                f"{namespace}/g",
                a_group("g", namespace=namespace).in_queue(queue).view(),
            )

    def shows(self, pod: PodBuilder | None, key: str = "ml/p") -> None:
        show(self.caches.pods, pod.view().key if pod else key, pod.view() if pod else None)

    def answers(self, pod: PodBuilder) -> None:
        """From now on that is what the writes of the pod are answered with."""
        self.writer.answered[pod.view().name] = pod.build()

    @asynccontextmanager
    async def begun(self, led: Term | None = None) -> AsyncIterator[None]:
        """Leads, and waits for no write."""
        await self.records.begin(led or term())
        task = asyncio.create_task(self.records.run())
        yield
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        self.records.end()

    @asynccontextmanager
    async def leading(self, led: Term | None = None) -> AsyncIterator[None]:
        async with self.begun(led):
            began = asyncio.get_running_loop().time()
            await self.records.written()
            self.waited_s = asyncio.get_running_loop().time() - began
            yield

    def written(self) -> dict[str, Any]:
        return {
            write.name: write.body["metadata"]["annotations"][names.CHARGED_QUEUE_ANNOTATION]
            for write in self.writer.writes
        }

    def used(self) -> tuple[int, int]:
        ledger = self.caches.ledger
        return ledger.used("q", "A") // 1000, ledger.used("other", "A") // 1000


async def test_all_that_was_let_in_before_is_written_before_anything_is_decided() -> None:
    world = World(*(old(f"p{number}") for number in range(40)), old("fine").charged("q"))
    async with world.leading():
        assert world.written() == {f"p{number}": "q" for number in range(40)}
        assert 0 < world.waited_s < 1


async def test_nothing_that_is_missing_is_nothing_to_wait_for() -> None:
    world = World(old("fine").charged("q"))
    async with world.leading():
        assert world.waited_s == 0
        assert world.writer.writes == []


async def test_what_is_fixed_stays_charged_whether_it_could_be_written_or_not() -> None:
    """A stranger's webhook that is down takes nothing off the books, and holds up nobody else's record or the pass."""
    world = World(old("p"), old("stuck"), old("elsewhere", "other"))
    world.writer.stuck.add("stuck")
    world.writer.answer_to = lambda name: DOWN if name == "p" else None
    async with world.leading():
        assert world.waited_s < FIRST_S
        world.names_queue("other")
        assert world.used() == (3, 0)
        await asyncio.sleep(60)
        tries = [write.at for write in world.writer.writes if write.name == "p"]
        assert 4 <= len(tries) <= 7
        assert world.written() == dict.fromkeys(("p", "stuck", "elsewhere"), "q")


async def test_the_pass_waits_for_a_while_only() -> None:
    world = World(*(old(f"p{number}") for number in range(100)))
    world.writer.stuck.update(f"p{number}" for number in range(100))
    async with world.leading():
        assert world.waited_s == FIRST_S


async def test_after_a_conflict_the_later_state_is_written() -> None:
    world = World(old("p"))
    world.writer.answers.append(CHANGED)
    async with world.leading():
        world.shows(old("p", version=2))
        await asyncio.sleep(5)
    versions = [write.body["metadata"]["resourceVersion"] for write in world.writer.writes]
    assert versions == ["1", "2"]


async def test_a_pod_that_comes_past_us_is_fixed_when_it_is_first_seen() -> None:
    """Bound while nobody was asked."""
    world = World()
    async with world.leading():
        world.shows(old("p"))
        world.names_queue("other")
        await asyncio.sleep(1)
        assert (world.written(), world.used()) == ({"p": "q"}, (1, 0))
        world.shows(old("p", version=2).charged("q"))
        await asyncio.sleep(60)
        assert len(world.writer.writes) == 1


async def test_what_is_taken_away_again_is_written_again() -> None:
    world = World(old("p"))
    async with world.leading():
        world.shows(old("p", version=2).charged("q"))
        world.shows(old("p", version=3))
        await asyncio.sleep(5)
    assert len(world.writer.writes) == 2


async def test_the_answer_is_known_before_the_watch_shows_it() -> None:
    world = World(old("p"))
    world.writer.answered["p"] = old("p", version=2).charged("q").build()
    async with world.leading():
        latest = world.caches.latest("ml/p")
        assert latest is not None
        assert latest.annotations[names.CHARGED_QUEUE_ANNOTATION] == "q"


async def test_a_pod_that_goes_or_ends_is_written_no_more() -> None:
    world = World(old("p"), old("q"))
    world.writer.answers.extend([DOWN, DOWN])
    async with world.leading():
        world.shows(None, "ml/p")
        world.shows(old("q").phase("Succeeded"))
        await asyncio.sleep(60)
        assert len(world.writer.writes) == 2


async def test_another_pod_of_the_name_is_another_pod() -> None:
    world = World(old("p"))
    world.writer.answers.append(DOWN)
    async with world.leading():
        world.shows(None, "ml/p")
        world.names_queue("other")
        world.shows(old("p").uid("new"))
        await asyncio.sleep(5)
        assert [write.body["metadata"]["uid"] for write in world.writer.writes] == ["uid-ml-p", "new"]
        assert world.used() == (0, 1)


async def test_who_does_not_lead_fixes_and_writes_nothing() -> None:
    """A standby's view may be late; the next leader has its own."""
    world = World(old("p"))
    world.writer.answers.append(DOWN)
    async with world.leading():
        pass
    world.shows(old("late"))
    world.names_queue("other")
    assert len(world.writer.writes) == 1
    assert world.used() == (0, 2)


async def test_nothing_is_written_once_the_term_is_over() -> None:
    world, now = World(old("p")), asyncio.get_running_loop().time
    async with world.leading(Term(1, now, now() - 1.0)):
        await asyncio.sleep(30)
        assert world.writer.writes == []
