"""The watch over mGPU pods that were let in and find no node: it says so once, and forgets with the pod."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from controller import stranded as module
from controller.announcements import ASTRAY_S, Announcements
from controller.stranded import AGAIN_S, DENIALS, SETTLE_S, StrandedPods
from core import reasons
from core.objects import Pod
from core.plan import stuck
from core.plan.admitted import AdmittedNodes
from core.queues.ledger import Ledger
from core.steps import Steps
from kube.turns import Turns
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder

pytestmark = pytest.mark.looptime
M1, M2 = (a_node(name).mgpu(1, memory=16384) for name in ("m1", "m2"))
LED = a_pod("led").mgpu(core=60, memory=2048).led_to("m1")
FREE = a_pod("free").mgpu(core=60, memory=2048)


class World:
    def __init__(self, *pods: PodBuilder, nodes: tuple[NodeBuilder, ...] = (M1, M2)) -> None:
        self.caches = caches([node.view() for node in nodes], [pod.view() for pod in pods])
        self.recorder = Recorder()
        self.announcements = Announcements(self.recorder)
        self.nominated: list[tuple[str, str]] = []
        self.watch = StrandedPods(
            self.caches, self.announcements, lambda pod, node: self.nominated.append((pod.name, node))
        )

    def books_moves(self) -> None:
        """From now on the books have what is nominated, as they have where it is written."""

        def move(pod: Pod, node: str) -> None:
            self.nominated.append((pod.name, node))
            self.caches.ledger.move_room(pod.uid, node)

        self.watch._nominate = move

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each) for each in (self.watch.run(), self.announcements.run())]
        await asyncio.sleep(0)
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)

    def deny(
        self, pod: PodBuilder, times: int = 1, node: str = "m1", reason: str = reasons.MGPU_NO_ROOM
    ) -> None:
        for _ in range(times):
            self.watch.refused(pod.view(), node, reason)

    def said(self) -> list[tuple[str, str]]:
        return [event[:2] for event in self.recorder.emitted]

    async def later(self) -> list[tuple[str, str]]:
        await asyncio.sleep(SETTLE_S + ASTRAY_S + 1)
        return self.said()


async def test_a_bind_that_is_refused_three_times_while_another_node_has_room_is_said_once() -> None:
    world = World(FREE)
    async with world.running():
        world.deny(FREE, DENIALS - 1)
        assert await world.later() == []
        world.deny(FREE)
        assert await world.later() == [("Pod free", reasons.MGPU_NODE_FULL)]
        note = world.recorder.emitted[0][2]
        assert "node m1 has no room" in note
        assert "room is on m2." in note
        world.deny(FREE, 100)
        assert len(await world.later()) == 1


async def test_without_room_anywhere_it_is_looked_again_when_the_number_has_doubled() -> None:
    world = World(FREE, nodes=(M1,))
    async with world.running():
        world.deny(FREE, DENIALS)
        assert await world.later() == []
        show(world.caches.nodes, "m2", M2.view())
        world.deny(FREE, DENIALS - 1)
        assert await world.later() == []
        world.deny(FREE)
        assert await world.later() == [("Pod free", reasons.MGPU_NODE_FULL)]


async def test_refusals_that_say_nothing_about_room_and_those_at_several_nodes_do_not_add_up() -> None:
    world = World(FREE)
    async with world.running():
        world.deny(FREE, 9, reason=reasons.NO_LEADER)
        world.deny(FREE, DENIALS - 1, node="m1")
        world.deny(FREE, DENIALS - 1, node="m2")
        assert await world.later() == []


async def test_counts_are_bounded_and_go_with_the_pod_or_with_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_COUNTED_MOST", 3)
    pods = [a_pod(f"p{n}").mgpu(core=60, memory=2048) for n in range(5)]
    world = World(*pods)
    async with world.running():
        for pod in pods:
            world.deny(pod)
        assert len(world.watch) == 3
        show(world.caches.pods, "ml/p4", None)
        show(world.caches.pods, "ml/p3", pods[3].bound_to("m2").view())
        assert len(world.watch) == 1
    assert len(world.watch) == 0


@pytest.mark.parametrize("change", [M1.cordoned(), M1.not_ready(), a_node("m1"), None])
async def test_a_pod_whose_only_node_is_lost_is_told(change: NodeBuilder | None) -> None:
    world = World(LED, FREE)
    async with world.running():
        assert await world.later() == []
        show(world.caches.nodes, "m1", None if change is None else change.view())
        assert await world.later() == [("Pod led", reasons.MGPU_ROOM_GONE)]
        show(world.caches.nodes, "m2", M2.label("a", "b").view())
        assert len(await world.later()) == 1


async def test_a_node_that_is_back_in_a_moment_was_never_lost() -> None:
    world = World(LED)
    async with world.running():
        await world.later()
        show(world.caches.nodes, "m1", M1.not_ready().view())
        await asyncio.sleep(SETTLE_S + 1)
        show(world.caches.nodes, "m1", M1.view())
        assert await world.later() == []


async def test_a_leader_that_begins_looks_at_those_who_were_led_before() -> None:
    world = World(LED, nodes=(M1.cordoned(), M2))
    async with world.running():
        assert await world.later() == [("Pod led", reasons.MGPU_ROOM_GONE)]


async def test_who_changes_or_goes_while_a_term_begins_is_looked_at_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One step a round of the loop. A term that is over before the last one is followed by another."""
    monkeypatch.setattr(module, "_ADDED_IN_A_STEP", 1)
    pods = {name: a_pod(name).mgpu(core=1, memory=1).led_to("m0") for name in "abcdef"}
    world = World(*pods.values())
    world.caches.turns = Turns(2, count().__next__)
    async with world.running():
        pass
    async with world.running():
        show(world.caches.pods, "ml/f", None)
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(0)
        show(world.caches.pods, "ml/e", pods["e"].bound_to("m1").view())
        show(world.caches.pods, "ml/new", a_pod("new").mgpu(core=1, memory=1).led_to("m1").view())
        show(world.caches.nodes, "m1", None)
        assert world.said() == []
        said = [
            ("Pod new", reasons.MGPU_ROOM_GONE),
            *((f"Pod {name}", reasons.MGPU_ROOM_GONE) for name in "bcd"),
        ]
        assert sorted(await world.later()) == sorted(said)


async def test_nobody_looks_while_another_one_leads() -> None:
    world = World(LED, FREE)
    show(world.caches.nodes, "m1", None)
    world.deny(FREE, DENIALS, node="m2")
    assert await world.later() == []


NOMINATED = a_pod("nominated").mgpu(core=60, memory=2048).in_group("g").task("w").nominated_for("m1")


async def test_who_was_nominated_for_a_node_that_does_not_take_it_any_more_is_nominated_for_another_one() -> (
    None
):
    world = World(NOMINATED)
    async with world.running():
        assert await world.later() == []
        assert world.nominated == []
        show(world.caches.nodes, "m1", M1.cordoned().view())
        assert await world.later() == []
    assert world.nominated == [("nominated", "m2")]


async def test_it_is_not_nominated_for_the_place_of_another_member() -> None:
    """It may be bound there all the same. Room that comes later is found."""
    mate = NOMINATED.put("metadata", "name", value="mate").uid("uid-mate").nominated_for("m2")
    world = World(NOMINATED, mate)
    async with world.running():
        show(world.caches.nodes, "m1", M1.cordoned().view())
        assert await world.later() == []
        assert world.nominated == []
        show(world.caches.nodes, "m3", a_node("m3").mgpu(1, memory=16384).view())
        await asyncio.sleep(AGAIN_S)
    assert world.nominated == [("nominated", "m3")]


async def test_a_new_leader_finds_out_whose_place_is_gone() -> None:
    world = World(NOMINATED, nodes=(M1.cordoned(), M2))
    async with world.running():
        await world.later()
    assert world.nominated == [("nominated", "m2")]


async def test_it_is_not_nominated_for_a_node_without_cpu_for_it() -> None:
    world = World(
        NOMINATED.request("cpu", 2),
        a_pod("cpu").request("cpu", 7).bound_to("m2"),
        nodes=(M1, M2.allocatable("cpu", 8), a_node("m3").mgpu(1, memory=16384).allocatable("cpu", 8)),
    )
    async with world.running():
        show(world.caches.nodes, "m1", M1.cordoned().view())
        await world.later()
    assert world.nominated == [("nominated", "m3")]


async def test_who_lost_the_cpu_of_its_place_is_nominated_anew() -> None:
    """No node changes when pods without shares are bound there, and no bind need be refused."""
    pod = NOMINATED.request("cpu", 2)
    world = World(pod, nodes=(M1.allocatable("cpu", 8), M2.cordoned(), a_node("m3").mgpu(1, memory=16384)))
    async with world.running():
        show(world.caches.pods, "ml/some", a_pod("some").request("cpu", 6).bound_to("m1").view())
        await world.later()
        assert world.nominated == [], "there is enough left"
        show(world.caches.pods, "ml/cpu", a_pod("cpu").request("cpu", 1).bound_to("m1").view())
        await world.later()
    assert world.nominated == [("nominated", "m3")]


def mate(name: str, node: str, *, core: int = 60, created: str = "2024-01-01T00:00:00Z") -> PodBuilder:
    pod = a_pod(name).mgpu(core=core, memory=2048).in_group("g").task("w").created(created)
    return pod.nominated_for(node)


async def test_who_lost_its_place_to_a_member_with_another_ask_is_nominated_anew() -> None:
    """The scheduler may give a place to any member of the task. No node changes, and no bind need be refused."""
    more = mate("more", "m2", core=80)
    world = World(NOMINATED, more)
    async with world.running():
        assert await world.later() == []
        show(world.caches.pods, "ml/more", more.bound_to("m1").view())
        await asyncio.sleep(SETTLE_S + 0.1)
    assert world.nominated == [("nominated", "m2")]


async def test_of_two_on_a_node_that_has_room_for_one_now_the_younger_one_is_nominated_anew() -> None:
    """Each of them would find room there by itself."""
    old = mate("old", "m1", core=40)
    young = mate("young", "m1", core=40, created="2024-01-01T00:00:01Z")
    third = mate("third", "m2", core=50)
    world = World(old, young, third)
    async with world.running():
        assert await world.later() == []
        assert world.nominated == []
        show(world.caches.pods, "ml/third", third.bound_to("m1").view())
        await asyncio.sleep(SETTLE_S + 0.1)
    assert world.nominated == [("young", "m2")]


async def test_who_finds_no_other_place_is_nominated_as_soon_as_somebody_leaves_one() -> None:
    """Well before it is looked for one again in any case."""
    more, full = mate("more", "m1", core=80), a_pod("full").mgpu(core=90, memory=1024).bound_to("m2")
    world = World(NOMINATED, full, more)
    async with world.running():
        show(world.caches.pods, "ml/more", more.bound_to("m1").view())
        await world.later()
        assert world.nominated == []
        show(world.caches.pods, "ml/full", None)
        await asyncio.sleep(SETTLE_S + 0.1)
    assert world.nominated == [("nominated", "m2")]


async def test_two_that_lost_their_places_at_once_are_not_nominated_for_the_same_room() -> None:
    """The room of the first one is booked when the second one looks for one, though nothing has been written yet."""
    first, second = mate("first", "m1"), mate("second", "m2")
    world = World(first, second, nodes=(M1, M2, a_node("m3").mgpu(1, memory=16384)))
    world.books_moves()
    async with world.running():
        show(world.caches.nodes, "m1", M1.cordoned().view())
        show(world.caches.nodes, "m2", M2.cordoned().view())
        await world.later()
        assert len(world.nominated) == 1
        show(world.caches.nodes, "m4", a_node("m4").mgpu(1, memory=16384).view())
        await world.later()
    assert sorted(node for _, node in world.nominated) == ["m3", "m4"]
    assert sorted(name for name, _ in world.nominated) == ["first", "second"]


@pytest.mark.parametrize("denied", ["m1", "m2"])
async def test_a_nominated_pod_that_was_refused_three_times_is_nominated_for_another_node(
    denied: str,
) -> None:
    """Be it at its place, or because the scheduler does not use that for a reason of its own."""
    full = M2 if denied == "m1" else M2.cordoned()
    world = World(NOMINATED, nodes=(M1, full, a_node("m3").mgpu(1, memory=16384)))
    async with world.running():
        world.deny(NOMINATED, DENIALS, node=denied)
        assert await world.later() == [("Pod nominated", reasons.MGPU_NODE_FULL)]
        # A change of its node alone is no reason for another one.
        show(world.caches.nodes, "m1", M1.label("a", "b").view())
        await world.later()
    assert world.nominated == [("nominated", "m2" if denied == "m1" else "m3")]


async def test_of_a_pod_whose_bind_is_granted_while_its_node_is_looked_at_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, look = World(LED, nodes=(M1.cordoned(),)), stuck.room_gone

    def meanwhile(ledger: Ledger, pod: Pod, admitted: AdmittedNodes) -> Steps[str]:
        why = yield from look(ledger, pod, admitted)
        ledger.assume(LED.bound_to("m1").view())
        return why

    async with world.running():
        monkeypatch.setattr(module, "room_gone", meanwhile)
        assert await world.later() == []
        monkeypatch.undo()
        world.caches.ledger.forget(LED.view().uid)
        await asyncio.sleep(AGAIN_S)
        assert await world.later() == [("Pod led", reasons.MGPU_ROOM_GONE)], "its bind came to nothing"
