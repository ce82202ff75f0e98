"""Queue status at the beginning and at the end of a term: nothing is lost, and nothing is written that is not ours to write."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TypeVar, cast

import pytest

from controller import publishing
from controller.announcements import Announcements
from core.display.notices import QueueNotice, queue_notices
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Steps
from kube.turns import Turns
from tests.builders import a_pod, a_queue
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_publishing import START, World, allocated

pytestmark = pytest.mark.looptime(start=START)

T = TypeVar("T")


async def test_after_its_term_nothing_more_is_written() -> None:
    """Asked right before each request: the lease is lost while some are under way and others wait for a slot."""
    world, over = World(), term()
    for number in range(100):
        world.uses(f"o{number}", 1)
    world.writer.stuck.update(f"o{number}" for number in range(100))
    async with world.running(over):
        begun = len(world.writer.writes)
        assert publishing.SIDE_BY_SIDE <= begun < 100
        over.end()
        await asyncio.sleep(100)
        assert len(world.writer.writes) == begun


async def test_a_new_term_looks_at_every_queue_again_and_remembers_no_fight() -> None:
    world = World()
    async with world.running():
        assert len(world.writer.writes) == 1
    async with world.running():
        assert len(world.writer.writes) == 2


class SlowTurns(Turns):
    """Everybody else comes to his turn after each step, and for a hundredth of a second."""

    async def finish(self, steps: Steps[T], *, whole: bool = False) -> T:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast("T", end.value)
            await asyncio.sleep(0 if whole else 0.01)


@pytest.mark.parametrize("queue", ["a", "z"])
async def test_no_change_is_lost_however_close_to_the_first_look_at_all_queues(
    queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are put on the list in steps: when one changes that was looked at, others may not have been put on it yet."""
    world, looked = World(), asyncio.Event()

    def notices(ledger: Ledger, name: str) -> list[QueueNotice]:
        if name == queue:
            looked.set()
        return queue_notices(ledger, name)

    async def changing() -> None:
        await looked.wait()
        await asyncio.sleep(0.03)
        world.uses(queue, 2, "more")

    monkeypatch.setattr(publishing, "queue_notices", notices)
    monkeypatch.setattr(publishing, "_ADDED_IN_A_STEP", 1)
    world.caches.turns = SlowTurns()
    for name in "abcyz":
        world.uses(name, 1)
        show(world.caches.queues, name, a_queue(name).allocated({"A": "1"}).view())
    async with background(changing()), world.running():
        assert world.last(queue) == allocated(A="3")


async def test_of_a_pod_that_is_gone_before_it_is_told_that_nobody_can_count_it_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be remembered for ever."""
    monkeypatch.setattr(publishing, "_TOLD_IN_A_STEP", 1)
    world, told = World(), list[str]()

    def telling(_self: Announcements, entry: Entry) -> None:
        told.append(entry.pod.name)
        show(world.caches.pods, "ml/lost2", None)

    monkeypatch.setattr(Announcements, "uncounted", telling)
    world.caches.turns = SlowTurns()
    lost = a_pod("lost").gpu(1).limit("rdma/hca", 1).card("K80").in_queue("q").bound_to("n")
    for number in range(3):
        view = replace(lost.view(), name=f"lost{number}", uid=f"lost{number}")
        show(world.caches.pods, view.key, view)

    async with world.running():
        assert told == ["lost0", "lost1"]


async def test_pods_that_nobody_can_count_are_gone_through_once_a_second_however_often_their_queue_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though nothing of it is to be written. One that comes meanwhile is told of a moment later; and no queue is kept in mind."""
    world, told = World(), Counter[str]()
    monkeypatch.setattr(Announcements, "uncounted", lambda _, entry: told.update([entry.pod.name]))

    def lost(name: str, queue: str = "q") -> None:
        pod = a_pod(name).gpu(1).limit("rdma/hca", 1).card("K80").in_queue(queue).bound_to("n").view()
        show(world.caches.pods, pod.key, pod)

    lost("lost0")
    async with world.running():
        for number in range(20):
            waits = a_pod(f"w{number}").gpu(1).card("A").in_queue("q").gated().view()
            show(world.caches.pods, waits.key, waits)
            await asyncio.sleep(0.25)
            if number == 16:
                lost("lost1")
        await asyncio.sleep(2)
        assert 5 <= told["lost0"] <= 8
        assert 1 <= told["lost1"] <= 3
        lost("elsewhere", "gone")
        await asyncio.sleep(2)
        assert list(world.publisher._resting) == ["gone"]


async def test_what_changed_between_two_terms_and_while_the_next_one_begins_is_written() -> None:
    world = World()
    async with world.running():
        world.uses("q", 1, "b")
    world.uses("other", 1)
    async with world.running():
        assert (world.last("q"), world.last("other")) == (allocated(A="3"), allocated(A="1"))
        world.uses("other", 2, "c")
        await asyncio.sleep(2)
        assert world.last("other") == allocated(A="3")
