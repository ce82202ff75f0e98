"""Members of a task are nominated for the node of their room: after the lift, in each term, and anew when places change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from controller import nominations as module
from controller.nominations import AGAIN_S, Nominations
from core import names
from core.plan.admitted import AdmittedNodes
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.stuck import nodes_with_room
from core.settings import Settings
from core.steps import finish
from kube import errors
from kube.turns import Turns
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Writer, term

pytestmark = pytest.mark.looptime

BROKEN = errors.ServerError(500, "InternalError", "broken", None, None)
TIMED_OUT = errors.ApiError(408, "Timeout", "request did not complete in time", None, None)
FORBIDDEN = errors.Forbidden(403, "Forbidden", "no rights", None, None)
GONE = errors.NotFound(404, "NotFound", "gone", None, None)


def member(name: str, node: str = "", *, task: str = "w", core: int = 80) -> PodBuilder:
    built = a_pod(name).mgpu(core=core, memory=1024).in_group("g").task(task).scheduler("volcano")
    return built.charged("q").nominated_for(node) if node else built.gated()


class World:
    def __init__(self, *pods: PodBuilder, settings: Settings | None = None) -> None:
        nodes = [a_node(name).mgpu(1, memory=16384).view() for name in ("m0", "m1", "m2")]
        self.caches = caches(nodes, [pod.view() for pod in pods], settings=settings or Settings())
        self.caches.ledger.put_queue(a_queue("q").view())
        self.caches.ledger.put_group(a_group("g").in_queue("q").min_member(2).view())
        self.writer = Writer()
        self.nominations = Nominations(self.writer, self.caches)

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.nominations.run(term()))
        await asyncio.sleep(0)
        yield
        task.cancel()
        await asyncio.wait([task])

    def shows(self, pod: PodBuilder) -> None:
        view = pod.view()
        show(self.caches.pods, view.key, view)

    async def written(self, after_s: float = 0.1) -> list[tuple[str, str | None, Any]]:
        """What has been written since the last time."""
        await asyncio.sleep(after_s)
        writes, self.writer.writes = self.writer.writes, []
        return [(each.name, each.subresource, each.body) for each in writes]


def status(name: str, node: str) -> tuple[str, str | None, Any]:
    body = {"status": {"nominatedNodeName": node}, "metadata": {"uid": f"uid-ml-{name}"}}
    return name, "status", body


async def test_a_member_is_nominated_once_its_lift_is_seen_and_not_again() -> None:
    world = World(member("a"))
    async with world.leading():
        assert await world.written() == []
        world.shows(member("a", "m0"))
        assert await world.written() == [status("a", "m0")]
        world.shows(member("a", "m0").label("seen", "again"))
        assert await world.written() == []


async def test_a_new_leader_nominates_all_who_have_no_node_yet() -> None:
    world = World(member("a", "m0"), member("b", "m1").bound_to("m1"), member("c"))
    assert await world.written() == []
    async with world.leading():
        assert await world.written() == [status("a", "m0")]


async def test_who_comes_changes_or_goes_while_a_term_begins_is_nominated_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One step a round of the loop; nothing is written before the last one. A term that is over by then is followed by another."""
    monkeypatch.setattr(module, "_ADDED_IN_A_STEP", 1)
    world = World(*(member(name, "m0", core=5) for name in "abcdef"))
    world.caches.turns = Turns(2, count().__next__)
    async with world.leading():
        pass
    assert await world.written() == []
    async with world.leading():
        world.shows(member("new", "m1", core=5))
        show(world.caches.pods, "ml/f", None)
        await asyncio.sleep(0)
        world.shows(member("a", "m2", core=5))
        world.shows(member("e", "m2", core=5))
        await asyncio.sleep(0)
        world.shows(member("b", "m0", core=5).bound_to("m0"))
        assert world.writer.writes == []
        kept, moved = (status(name, "m0") for name in "cd"), (status(name, "m2") for name in "ae")
        assert sorted(await world.written()) == sorted([*kept, *moved, status("new", "m1")])
        assert await world.written() == []


async def test_who_was_narrowed_to_a_node_needs_no_nomination() -> None:
    world = World(a_pod("a").mgpu(core=80, memory=1024).charged("q").led_to("m0"))
    async with world.leading():
        assert await world.written() == []


async def test_who_loses_its_place_to_a_member_of_its_task_gets_that_one_s() -> None:
    """`b` may go where `a` has gone, but there is no room for it any more."""
    world = World(member("a", "m0"), member("b", "m1"), member("other", "m1", task="v"))
    async with world.leading():
        await world.written()
        world.shows(member("a", "m0").bound_to("m1"))
        place = {"annotations": {names.NOMINATED_ANNOTATION: "m0"}, "uid": "uid-ml-b"}
        assert await world.written() == [("b", None, {"metadata": place})]
        world.shows(member("b", "m0"))
        assert await world.written() == [status("b", "m0")]


async def test_who_still_has_room_beside_it_keeps_its_place() -> None:
    world = World(member("a", "m0"), member("less", "m1", core=10), member("other", "m1", task="v"))
    async with world.leading():
        await world.written()
        world.shows(member("a", "m0").bound_to("m1"))
        assert await world.written() == []


async def test_who_goes_where_it_was_nominated_for_takes_nobody_s_place() -> None:
    world = World(member("a", "m1"), member("b", "m1"))
    async with world.leading():
        await world.written()
        world.shows(member("a", "m1").bound_to("m1"))
        assert await world.written() == []


async def test_who_asks_for_more_than_the_place_that_is_left_has_is_not_sent_there() -> None:
    """It is looked for another node for it, see StrandedPods."""
    world = World(member("a", "m0"), member("more", "m1", core=90), member("half", "m0", core=20, task="v"))
    async with world.leading():
        await world.written()
        world.shows(member("a", "m0").bound_to("m1"))
        assert await world.written() == []


async def test_who_asks_for_less_than_the_one_that_has_its_place_gets_that_one_s() -> None:
    world = World(member("a", "m0"), member("less", "m1", core=40))
    async with world.leading():
        await world.written()
        world.shows(member("a", "m0").bound_to("m1"))
        place = {"annotations": {names.NOMINATED_ANNOTATION: "m0"}, "uid": "uid-ml-less"}
        assert await world.written() == [("less", None, {"metadata": place})]


def room(world: World, pod: PodBuilder) -> list[str]:
    """The nodes that would take a pod of the task, by the books."""
    return sorted(
        finish(nodes_with_room(world.caches.ledger, pod.view(), "", AdmittedNodes(world.caches.ledger)))
    )


async def test_a_move_is_in_the_books_from_the_moment_on_that_it_is_decided() -> None:
    """Whoever looks for room before it is written finds the place that it has left, and not the one that it is given."""
    world, other = World(member("a", "m0"), member("b", "m1")), member("c")
    async with world.leading():
        assert room(world, other) == ["m2"]
        world.nominations.move(member("a", "m0").view(), "m2")
        assert room(world, other) == ["m0"]
        assert lifted(world, other) == "m0"


def lifted(world: World, pod: PodBuilder) -> str:
    """For which node a member is nominated that is lifted now."""
    world.shows(pod)
    (lift,) = (each for each in Planner(world.caches.ledger).decide("q") if isinstance(each, Lift))
    return lift.records[names.NOMINATED_ANNOTATION]


async def test_two_moves_at_once_take_no_room_twice() -> None:
    """Of two that come to the places of others one gets the place that is left."""
    world = World(member("a", "m0"), member("b", "m1"), member("c", "m2"))
    async with world.leading():
        await world.written()
        # One after the other, before anybody has looked at the first one.
        world.shows(member("a", "m0").bound_to("m1"))
        world.shows(member("c", "m2").bound_to("m0"))
        moved = [(name, body["metadata"].get("annotations")) for name, _, body in await world.written()]
        assert moved == [("b", {names.NOMINATED_ANNOTATION: "m2"})]
        assert room(world, member("d")) == []


async def test_a_move_that_is_not_seen_yet_is_followed_by_another_one() -> None:
    """Nothing is shown in between of what is written for the first one."""
    world = World(member("a", "m0"), member("b", "m1"), member("c", "m2"))
    async with world.leading():
        await world.written()
        world.shows(member("a", "m0").bound_to("m1"))
        moves = await world.written()
        assert room(world, member("d")) == []
        world.shows(member("c", "m2").bound_to("m0"))
        moves += await world.written()
        moved = [(name, body["metadata"].get("annotations")) for name, _, body in moves]
        assert moved == [("b", {names.NOMINATED_ANNOTATION: node}) for node in ("m0", "m2")]


async def test_a_move_stays_booked_whatever_else_is_seen_of_the_pod_until_it_is_seen_itself() -> None:
    world, other = World(member("a", "m0")), member("c")
    async with world.leading():
        world.nominations.move(member("a", "m0").view(), "m2")
        world.shows(member("a", "m0").label("seen", "again"))
        assert room(world, other) == ["m0", "m1"]
        world.shows(member("a", "m2"))
        world.shows(member("a", "m1"))
        assert room(world, other) == ["m0", "m2"], "what is seen later counts"


@pytest.mark.parametrize("error", [FORBIDDEN, GONE])
async def test_a_move_that_is_refused_for_good_is_given_back(error: errors.KubeError) -> None:
    world, other = World(member("a", "m0")), member("c")
    async with world.leading():
        await world.written()
        world.writer.answers.append(error)
        world.nominations.move(member("a", "m0").view(), "m2")
        assert room(world, other) == ["m0", "m1"]
        assert len(await world.written()) == 1
        assert room(world, other) == ["m1", "m2"]
        assert await world.written(60 * AGAIN_S) == []


async def test_a_move_of_which_nobody_knows_whether_it_was_stored_stays_booked_and_is_tried_again() -> None:
    world, other = World(member("a", "m0")), member("c")
    async with world.leading():
        await world.written()
        world.writer.answers.append(BROKEN)
        world.nominations.move(member("a", "m0").view(), "m2")
        first = await world.written(AGAIN_S / 2)
        assert room(world, other) == ["m0", "m1"]
        assert await world.written(AGAIN_S) == first


async def test_a_move_that_was_decided_while_another_one_was_refused_stands() -> None:
    world, other = World(member("a", "m0")), member("c")
    async with world.leading():
        await world.written()
        world.writer.answers.append(GONE)
        world.nominations.move(member("a", "m0").view(), "m2")
        await asyncio.sleep(world.writer.latency_s("a") / 2)
        world.nominations.move(member("a", "m0").view(), "m1")
        places = [body["metadata"]["annotations"] for _, _, body in await world.written()]
        assert places == [{names.NOMINATED_ANNOTATION: "m2"}, {names.NOMINATED_ANNOTATION: "m1"}]
        assert room(world, other) == ["m0", "m2"]


async def test_at_the_end_of_a_term_no_move_is_left_in_the_books() -> None:
    world, other = World(member("a", "m0")), member("c")
    async with world.leading():
        world.nominations.move(member("a", "m0").view(), "m2")
    world.caches.give_back()
    await world.caches.settled()
    assert room(world, other) == ["m1", "m2"]


@pytest.mark.parametrize("error", [BROKEN, TIMED_OUT])
async def test_a_write_that_the_server_cannot_answer_is_tried_again(error: errors.KubeError) -> None:
    world = World(member("a", "m0"))
    world.writer.answers.append(error)
    async with world.leading():
        assert await world.written(AGAIN_S / 2) == [status("a", "m0")]
        assert await world.written(AGAIN_S) == [status("a", "m0")]


async def test_a_pod_is_moved_to_the_node_that_it_is_told() -> None:
    world = World(member("a", "m0"))
    world.nominations.move(member("a", "m0").view(), "m2")  # nobody leads
    async with world.leading():
        assert await world.written() == [status("a", "m0")]
        world.nominations.move(member("a", "m0").view(), "m2")
        place = {"annotations": {names.NOMINATED_ANNOTATION: "m2"}, "uid": "uid-ml-a"}
        assert await world.written() == [("a", None, {"metadata": place})]


@pytest.mark.parametrize("error", [FORBIDDEN, GONE])
async def test_a_refused_one_is_left_at_that(error: errors.KubeError) -> None:
    world = World(member("a", "m0"))
    world.writer.answers.append(error)
    async with world.leading():
        assert await world.written() == [status("a", "m0")]
        assert await world.written(60 * AGAIN_S) == []


async def test_nothing_is_written_for_a_pod_that_has_got_a_node_or_is_gone_meanwhile() -> None:
    world = World(member("a", "m0"))
    world.writer.answers.append(BROKEN)
    async with world.leading():
        await world.written(AGAIN_S / 2)
        world.shows(member("a", "m0").bound_to("m0"))
        assert await world.written(2 * AGAIN_S) == []


async def test_without_mgpu_nobody_is_nominated() -> None:
    world = World(member("a"), settings=Settings.model_validate({"features": {"mgpu": False}}))
    async with world.leading():
        world.shows(member("a", "m0"))
        assert await world.written() == []
