"""Pods that lost their place and find no other one: they find room at once wherever it comes free, and no other node is looked at."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controller import stranded
from controller.stranded import AGAIN_S, SETTLE_S
from core import names
from core.plan import stuck
from core.steps import Steps
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import show
from tests.unit.controller.test_stranded import M1, M2, NOMINATED, World

pytestmark = pytest.mark.looptime
RECORD = names.GPU_INDEX_PREFIX + "main"
HOMELESS, NODES = 7, 20
FULL = a_pod("full").mgpu(core=90, memory=1024)


@pytest.mark.parametrize(
    ("there", "then"),
    [
        (FULL.bound_to("m2"), None),
        (FULL.bound_to("m2"), FULL.bound_to("m2").phase("Succeeded")),
        (FULL.led_to("m2"), None),
        (FULL.nominated_for("m2"), FULL.nominated_for("m1")),
        (FULL.nominated_for("m2"), FULL.nominated_for("m2").bound_to("m1")),
        (FULL.request("cpu", 7).bound_to("m2"), FULL.request("cpu", 7).mgpu(core=10).bound_to("m2")),
    ],
)
async def test_room_is_found_at_once_however_it_comes_free(
    there: PodBuilder, then: PodBuilder | None
) -> None:
    world = World(NOMINATED, there, nodes=(M1.cordoned(), M2))
    async with world.running():
        await world.later()
        assert world.nominated == []
        show(world.caches.pods, "ml/full", None if then is None else then.view())
        await asyncio.sleep(SETTLE_S + 0.1)
    assert world.nominated == [("nominated", "m2")]


async def test_a_node_that_changes_while_all_are_looked_at_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(NOMINATED, FULL.bound_to("m2"), nodes=(M1.cordoned(), M2))
    real = stuck.nodes_with_room

    def meanwhile(*args: Any, **more: Any) -> Steps[list[str]]:
        found = yield from real(*args, **more)
        show(world.caches.pods, "ml/full", None)
        return found

    monkeypatch.setattr(stranded, "nodes_with_room", meanwhile)
    async with world.running():
        await asyncio.sleep(SETTLE_S + 0.1)
    assert world.nominated == [("nominated", "m2")]


async def test_a_move_that_comes_to_nothing_is_made_again() -> None:
    """Though the pod was about to be looked at while its room was booked already."""
    world = World(NOMINATED, FULL.bound_to("m2"), nodes=(M1.cordoned(), M2))
    world.books_moves()
    async with world.running():
        await asyncio.sleep(AGAIN_S - SETTLE_S - 1)
        show(world.caches.pods, "ml/full", None)
        await asyncio.sleep(SETTLE_S + 5)
        assert world.nominated == [("nominated", "m2")]
        world.caches.ledger.keep_room(NOMINATED.view().uid)
        await asyncio.sleep(AGAIN_S)
    assert world.nominated == [("nominated", "m2")] * 2


async def test_who_tolerates_a_node_now_is_nominated_for_it_at_once() -> None:
    taint = {"key": "x", "value": "y", "effect": "NoSchedule"}
    world = World(NOMINATED, nodes=(M1.cordoned(), M2.put("spec", "taints", value=[taint])))
    async with world.running():
        await world.later()
        assert world.nominated == []
        tolerant = NOMINATED.put("spec", "tolerations", value=[{"operator": "Exists"}])
        show(world.caches.pods, "ml/nominated", tolerant.view())
        await asyncio.sleep(SETTLE_S + 0.1)
    assert world.nominated == [("nominated", "m2")]


async def test_who_may_stay_where_it_was_nominated_is_not_looked_at_any_more() -> None:
    world = World(NOMINATED, FULL.bound_to("m1"), nodes=(M1,))
    async with world.running():
        await world.later()
        assert len(world.watch._homeless) == 1
        show(world.caches.pods, "ml/full", None)
        await asyncio.sleep(SETTLE_S + 0.1)
        assert not world.watch._homeless
    assert world.nominated == []


class Crowd:
    """Full nodes, and pods that lost their place on the first of them; `looked` names the node of each examination."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes = [a_node(f"n{n}").mgpu(1, memory=16384) for n in range(NODES)]
        full = [
            a_pod(f"full{n}").mgpu(core=99).bound_to(f"n{n}").annotation(RECORD, "0") for n in range(NODES)
        ]
        lost = [
            a_pod(f"lost{n}").mgpu(core=60, memory=2048).in_group("g").task("w").nominated_for("n0")
            for n in range(HOMELESS)
        ]
        plain = a_pod("plain").request("cpu", 1)
        self.plain, self.there = plain.bound_to("cpu"), a_pod("there").request("cpu", 1).bound_to("n5")
        nodes = (*self.nodes, a_node("cpu"))
        self.world = World(*full, *lost, self.plain, self.there, nodes=nodes)
        self.looked: list[str] = []
        real = stuck._closed

        def counted(*args: Any) -> Steps[str]:
            self.looked.append(str(args[3]))
            return (yield from real(*args))

        monkeypatch.setattr(stuck, "_closed", counted)

    async def after(self, *events: Callable[[], None]) -> list[str]:
        """The nodes that are looked at by these events, once for each time, well before it is looked again in any case."""
        async with self.world.running():
            await asyncio.sleep(SETTLE_S + 1)
            assert len(self.world.watch._homeless) == HOMELESS
            self.looked.clear()
            for event in events:
                event()
            await asyncio.sleep(SETTLE_S + 1)
            looked = list(self.looked)
            await asyncio.sleep(AGAIN_S)
            assert len(self.looked) - len(looked) == HOMELESS * NODES, "all with cards, now and then"
        return looked

    def pod(self, name: str) -> Callable[[], None]:
        """That this pod goes."""
        return lambda: show(self.world.caches.pods, f"ml/{name}", None)

    def node(self, number: int, label: str = "x") -> Callable[[], None]:
        """That this node changes."""
        changed = self.nodes[number].label(label, "y").view()
        return lambda: show(self.world.caches.nodes, changed.name, changed)


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Crowd:
    return Crowd(monkeypatch)


async def test_a_pod_that_goes_from_a_node_without_mgpu_cards_has_nothing_looked_at(crowd: Crowd) -> None:
    assert await crowd.after(crowd.pod("plain")) == []


async def test_a_node_without_mgpu_cards_that_changes_has_nothing_looked_at(crowd: Crowd) -> None:
    changed = a_node("cpu").label("x", "y").view()
    assert await crowd.after(lambda: show(crowd.world.caches.nodes, "cpu", changed)) == []


async def test_a_pod_that_goes_from_a_node_with_cards_has_that_node_looked_at(crowd: Crowd) -> None:
    """Whatever it asked for itself: CPU that comes free may be what was lacking."""
    assert await crowd.after(crowd.pod("there")) == ["n5"] * HOMELESS


async def test_changes_that_come_together_are_looked_at_together(crowd: Crowd) -> None:
    looked = await crowd.after(crowd.node(3), crowd.node(5), crowd.pod("there"), crowd.node(3, "z"))
    assert sorted(looked) == ["n3"] * HOMELESS + ["n5"] * HOMELESS


async def test_the_place_that_was_lost_is_looked_at_by_itself_when_it_changes(crowd: Crowd) -> None:
    assert await crowd.after(crowd.node(0)) == ["n0"] * HOMELESS


async def test_a_pod_that_comes_to_the_place_that_was_lost_has_nothing_looked_at(crowd: Crowd) -> None:
    come = a_pod("come").request("cpu", 1).bound_to("n0").view()
    assert await crowd.after(lambda: show(crowd.world.caches.pods, "ml/come", come)) == []
