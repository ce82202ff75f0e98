"""A term begins for which much is left from before: for how long nothing else is heard, and what becomes of what happens meanwhile.

Counted in calls, see test_slices_of_a_leader.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from itertools import count, cycle
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.metrics import Metrics
from controller.nominations import Nominations
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from core.objects import Pod
from core.plan import reservations as module
from core.plan.reservations import Reservations
from core.settings import ReservationSettings, Settings
from core.stage import Stages
from core.steps import finish
from kube.turns import Turns
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder
from tests.fakes.apiserver import background
from tests.fakes.counted import CountedLoop, calls_of, longest_step, run
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term
from tests.unit.controller.test_reservations import EVICT, MONOTONIC, World

IN_ONE_GO = 15_000
"""Calls: a slice, a step that ends it late, and what the others do in the same round of the loop."""
TAKEN_UP = 10_000
"""Calls: what a work queue takes up in one round, beside them."""
PODS, NODES = 4_000, 1_000
WARN_S = 10
RESERVED = a_pod("p").gpu(1).card("A").in_queue("q").written_by("cardquota", "2024-01-01T00:01:00Z").view()

Work = Coroutine[Any, Any, None]


def many(pod: Pod, pods: int = PODS) -> list[Pod]:
    return [replace(pod, name=f"p{number}", uid=f"u{number}") for number in range(pods)]


def some_nodes(nodes: int) -> list[NodeBuilder]:
    return [a_node(f"n{number}").mgpu(1, memory=16384) for number in range(nodes)]


def with_shares(pods: int, nodes: Sequence[NodeBuilder]) -> Caches:
    """Pods that were let in and nominated for nodes, and have none yet."""
    asking = many(a_pod("p").mgpu(core=10, memory=16).charged("q").view(), pods)
    places = [a_pod("p").charged("q").nominated_for(node.view().name).view().annotations for node in nodes]
    views = [replace(pod, annotations=place) for pod, place in zip(asking, cycle(places), strict=False)]
    found = caches([node.view() for node in nodes], views)
    assert len(found.ledger.reserved_shares) == pods
    return found


def nominations() -> Callable[[], Work]:
    led = Nominations(Writer(), with_shares(PODS, some_nodes(NODES)))
    return lambda: led.run(term())


def stranded() -> Callable[[], Work]:
    return StrandedPods(with_shares(PODS, some_nodes(NODES)), Announcements(Recorder())).run


def reservations() -> Callable[[], Work]:
    """All of them are told of in each term."""
    settings = Settings(reservation=ReservationSettings(warn_after_s=WARN_S))
    cluster, metrics = caches([a_node("n").card("A", 8).view()]), Metrics(CollectorRegistry())
    watch = ReservationWatch(Writer(), cluster, Announcements(Recorder()), metrics, settings, lambda: 0)

    async def lead() -> None:
        for pod in many(RESERVED) if not len(cluster.pods) else ():
            show(cluster.pods, pod.key, pod)
        try:
            await watch.run(term())
        finally:
            assert len(list(watch.late())) == PODS

    return lead


@pytest.mark.parametrize(
    ("leads", "terms", "most"),
    [
        (nominations, 1, IN_ONE_GO + TAKEN_UP),
        (stranded, 1, IN_ONE_GO + TAKEN_UP),
        (reservations, 2, IN_ONE_GO),
    ],
)
def test_a_term_begins_in_slices(leads: Callable[[], Callable[[], Work]], terms: int, most: int) -> None:
    """Whoever was let in before is come to, however many they are."""
    lead = leads()

    async def last(loop: CountedLoop) -> int:
        begun = 0
        for _ in range(terms):
            loop.longest = 0
            task = asyncio.create_task(lead())
            await asyncio.sleep(2 * WARN_S)
            begun = loop.longest
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
        return begun

    assert run(last) < most


def reserved_ones(pods: int, *, late: bool) -> Reservations:
    """So many; where they are late they were told of in the term before."""
    settings = Settings(reservation=ReservationSettings(warn_after_s=WARN_S))
    reservations = Reservations(settings.reservation, Stages(settings))
    for pod in many(RESERVED, pods):
        reservations.put_pod(pod, lambda: (0, 0))
    if late:
        assert len(list(reservations.take_due(WARN_S * 10**6))) == pods
    return reservations


def test_those_that_were_late_become_due_anew_in_steps() -> None:
    """A thousand calls take about half a millisecond."""
    most = longest_step(reserved_ones(PODS, late=True).restart())
    assert most < 1_000
    assert most <= longest_step(reserved_ones(PODS // 4, late=True).restart())


def test_those_that_were_not_late_are_not_looked_at() -> None:
    """A first term has nothing to begin anew, however many are reserved by then."""
    some, none = (reserved_ones(pods, late=False) for pods in (PODS, 0))
    assert calls_of(lambda: finish(some.restart())) == calls_of(lambda: finish(none.restart()))


@pytest.mark.looptime(start=MONOTONIC)
async def test_who_comes_and_goes_while_a_term_begins_is_told_once_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One step a round of the loop; nobody is taken up before the last one, and nobody of the term before is deleted."""
    told: list[str] = []
    monkeypatch.setattr(Announcements, "overdue", lambda _self, pod, *_: told.append(pod.name))
    monkeypatch.setattr(module, "_RESTARTED_IN_A_STEP", 1)
    world = World(settings=EVICT)
    world.caches.turns = Turns(2, count().__next__)
    world.reserves("a", "b", "c", "d")
    await asyncio.sleep(3590)
    async with world.running():
        assert told == ["a", "b", "c", "d"]

    async def meanwhile() -> None:
        for name in ("b", "new", "c"):
            await asyncio.sleep(0)
            assert told == ["a", "b", "c", "d"]
            show(world.caches.pods, f"ml/{name}", None)
            world.reserves(name)

    changes = asyncio.create_task(meanwhile())
    async with world.running():
        await changes
        assert sorted(told[4:]) == ["a", "b", "c", "d", "new"]
        assert world.deleted() == []
        await asyncio.sleep(20)
        assert world.deleted() == ["a", "d"]
        await asyncio.sleep(3590)
        assert len(told) == 9


def test_nodes_that_are_back_together_are_looked_at_in_slices() -> None:
    """As after a network that was cut: each pod that was nominated for one of them has its place again."""
    nodes = some_nodes(100)
    cluster = with_shares(1_000, nodes)
    watch = StrandedPods(cluster, Announcements(Recorder()))

    async def lost_and_found(loop: CountedLoop) -> int:
        async with background(watch.run()):
            await asyncio.sleep(1)
            for node in nodes:
                show(cluster.nodes, node.view().name, node.not_ready().view())
            await asyncio.sleep(60)
            assert len(watch._homeless) == 1_000
            for node in nodes:
                show(cluster.nodes, node.view().name, node.view())
            await asyncio.sleep(0)
            loop.longest = 0
            await asyncio.sleep(60)
        assert watch._homeless == {}
        return loop.longest

    assert run(lost_and_found) < IN_ONE_GO + TAKEN_UP
