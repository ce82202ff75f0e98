"""The loop that mends records: at once where it helps, said once where it does not, and never in a hot loop."""

import asyncio
from typing import Any

import pytest

from controller import repair
from core import reasons
from core.mgpu import records
from core.mgpu.repair import Examination, examine
from core.objects import Node
from core.settings import Settings
from kube import errors
from tests.builders import a_node, a_pod
from tests.unit.controller.cluster import show
from tests.unit.controller.fakes import term
from tests.unit.controller.repairing import CONFLICT, World, bound

pytestmark = pytest.mark.looptime(start=1_000_000)


async def test_a_pod_found_without_a_record_gets_one_in_one_write_under_our_name() -> None:
    world = World(bound("old", record="0"), bound("p"))
    async with world.leading():
        assert world.written() == [("p", "1")]
        (write,) = world.writer.writes
        assert (write.subresource, write.field_manager) == (None, "cardquota")
        assert write.body["metadata"]["resourceVersion"] == "1"
        assert world.said() == [("Pod p", reasons.MGPU_RECORD_ASSIGNED)]
        world.shows(bound("p", record="1", version=2))
        await asyncio.sleep(600)
        assert len(world.writer.writes) == 1
        assert world.wrong("missing") == 0


async def test_one_that_comes_later_is_mended_at_once() -> None:
    world = World()
    async with world.leading():
        world.shows(bound("p"))
        await asyncio.sleep(0.05)
        assert world.written() == [("p", "0")]


async def test_cards_being_assigned_are_granted_to_nobody() -> None:
    """Until the watch shows them, and also while the answer is lost."""
    world = World(bound("p"))
    world.writer.answers.extend([errors.ConnectionFailed("cut")] * 3)
    world.shows(a_pod("wide").mgpu(core=200), a_pod("next").mgpu(core=100))
    async with world.leading():
        assert world.said() == []
        assert await world.bind("wide") == ""
        assert await world.bind("next") == "1"
        await asyncio.sleep(5)
        assert set(world.written()) == {("p", "0")}
        assert len(world.writer.writes) >= 4


async def test_cards_being_assigned_do_not_move_with_what_changes_on_the_node() -> None:
    """Chosen anew they would be those of card 1, where the pod fits more closely by then, and 0 would be given away."""
    world = World(bound("a", 80, "1"), bound("p", 30))
    world.writer.answers.extend([errors.ConnectionFailed("cut")] * 3)
    async with world.leading():
        assert world.written() == [("p", "0")]
        world.shows(bound("b", 20, "1"), a_pod("next").mgpu(core=100))
        show(world.caches.pods, "ml/a", None)
        assert await world.bind("next") == ""


async def test_a_write_that_is_due_later_is_not_forgotten_over_another_change_of_the_node() -> None:
    world = World(bound("p"))
    world.writer.answers.append(errors.ConnectionFailed("cut"))
    async with world.leading():
        world.shows(bound("other", 10, "1"))
        await asyncio.sleep(5)
        assert world.written() == [("p", "0"), ("p", "0")]


async def test_a_pod_that_was_granted_cards_has_nothing_to_do_with_a_later_one_of_its_name() -> None:
    """The first was deleted before its bind was stored, and the grant has not run out."""
    world = World()
    async with world.leading():
        world.caches.ledger.assume(bound("p", 60, "1").uid("first").view())
        world.shows(bound("p").uid("second"))
        await asyncio.sleep(1)
        assert world.written() == [("p", "0")]
        assert world.said() == [("Pod p", reasons.MGPU_RECORD_ASSIGNED)]


async def test_a_pod_that_goes_before_its_cards_reach_it_leaves_nothing_behind() -> None:
    world = World(bound("p"))
    world.writer.answers.append(errors.ConnectionFailed("cut"))
    async with world.leading():
        assert world.caches.records.assigned_here("uid-ml-p")
        show(world.caches.pods, "ml/p", None)
        await asyncio.sleep(5)
        assert not world.caches.records.assigned_here("uid-ml-p")
        assert len(world.writer.writes) == 1


async def test_a_conflict_waits_for_the_watch_and_keeps_the_cards() -> None:
    world = World(bound("p"))
    world.writer.answers.append(CONFLICT)
    async with world.leading():
        world.shows(bound("p", version=2))
        await asyncio.sleep(1)
        assert [w.body["metadata"]["resourceVersion"] for w in world.writer.writes] == ["1", "2"]
        assert world.said() == [("Pod p", reasons.MGPU_RECORD_ASSIGNED)]


async def test_one_that_started_first_is_only_told_about() -> None:
    world = World(bound("p"))
    world.writer.answers.append(CONFLICT)
    async with world.leading():
        world.shows(bound("p", version=2).started())
        await asyncio.sleep(60)
        assert len(world.writer.writes) == 1
        assert world.said() == [("Pod p", reasons.MGPU_RECORD_MISSING)]
        assert world.wrong("missing") == 1
        world.shows(a_pod("q").mgpu(core=200))
        assert await world.bind("q") == ""


async def test_one_that_starts_right_before_a_repeated_write_gets_no_record() -> None:
    """It came with the last event, and the node is not looked at again yet."""
    world = World(bound("p"))
    world.writer.answers.append(errors.ConnectionFailed("cut"))
    async with world.leading():
        await asyncio.sleep(0.106)
        world.shows(bound("p", version=2).started())
        await asyncio.sleep(60)
        assert len(world.writer.writes) == 1


async def test_without_room_nothing_is_written_until_there_is_some() -> None:
    world = World(bound("a", 200, "0,1"), bound("p", 100))
    async with world.leading():
        assert world.writer.writes == []
        assert world.said() == [("Pod p", reasons.MGPU_RECORD_MISSING)]
        assert world.wrong("no-room") == 1
        show(world.caches.pods, "ml/a", None)
        await asyncio.sleep(0.1)
        assert world.written() == [("p", "0")]
        assert world.wrong("no-room") == 0


async def test_an_edited_record_is_put_back_and_its_cards_are_granted_to_nobody() -> None:
    world = World(bound("a", 100, "0"))
    world.writer.answers.extend([errors.ServerError(500, "InternalError", "etcd", None, None)] * 2)
    async with world.leading():
        world.shows(bound("a", 100, "1", version=2), a_pod("q").mgpu(core=100))
        assert await world.bind("q") == "1"
        await asyncio.sleep(5)
        assert set(world.written()) == {("a", "0")}
        assert ("Pod a", reasons.MGPU_RECORD_RESTORED) in world.said()
        assert reasons.MGPU_RECORD_IRREGULAR not in str(world.said())


async def test_a_node_is_looked_at_once_for_a_burst_and_others_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, looked = World(), list[str]()
    for number in range(50):
        world.without(node=f"n{number}")

    def examined(node: Node, *rest: Any) -> Examination:
        looked.append(node.name)
        return examine(node, *rest)

    monkeypatch.setattr(repair, "examine", examined)
    async with world.leading():
        assert sorted(looked) == sorted(["m1", *(f"n{number}" for number in range(50))])
        looked.clear()
        for number in range(30):
            world.shows(bound(f"p{number}", 1, "0").started())
            await asyncio.sleep(0)
        await asyncio.sleep(1)
        assert looked == ["m1"]


async def test_a_standby_keeps_no_list_of_what_changed_and_of_what_was_to_be_written() -> None:
    world = World(bound("p"))
    world.writer.answers.append(errors.ConnectionFailed("cut"))
    async with world.leading():
        pass
    repairer = world.repairer
    assert (repairer._repairs, repairer._attempts, len(repairer._writes)) == ({}, {}, 0)
    for number in range(100):
        world.without(f"a{number}", node=f"n{number}")
    assert len(world.repairer._looks) == 0


async def test_an_irregular_record_is_said_once_and_again_after_it_was_right() -> None:
    world = World(bound("p", record="0,1"))
    async with world.leading():
        for version in range(2, 10):
            world.shows(bound("p", record="0,1", version=version), bound("q", 10, "0", version=version))
            await asyncio.sleep(1)
        assert world.said() == [("Pod p", reasons.MGPU_RECORD_IRREGULAR)]
        assert world.wrong("wrong-count") == 1
        world.shows(bound("p", record="0"))
        await asyncio.sleep(1)
        assert world.wrong("wrong-count") == 0
        assert len(world.recorder.emitted) == 1


async def test_an_overbooked_card_is_said_of_its_node() -> None:
    world = World(bound("a", 100, "0"), bound("b", 100, "0"))
    async with world.leading():
        world.shows(bound("c", 10, "0"))
        await asyncio.sleep(1)
        assert world.said() == [("Node m1", reasons.MGPU_RECORD_IRREGULAR)]
        assert world.wrong("overbooked") == 1
        show(world.caches.nodes, "m1", None)
        await asyncio.sleep(1)
        assert world.wrong("overbooked") == 0


async def test_cards_that_come_to_a_node_go_to_who_waits_there_without() -> None:
    world = World(bound("a", 200, "0,1"), bound("p", 100))
    async with world.leading():
        show(world.caches.nodes, "m1", a_node("m1").mgpu(3, memory=16384).view())
        await asyncio.sleep(0.1)
        assert world.written() == [("p", "2")]


async def test_after_its_term_nothing_is_kept_and_the_next_one_begins_anew() -> None:
    world = World(bound("a", 100, "0"), bound("s").started())
    async with world.leading():
        world.writer.answers.append(errors.ConnectionFailed("cut"))
        world.shows(bound("a", 100, "1", version=2))
        assert records.recorded(world.caches.ledger.pods_on("m1")[0]) == {"main": (0,)}
    assert records.recorded(world.caches.ledger.pods_on("m1")[0]) == {"main": (1,)}
    assert world.wrong("missing") == 0
    world.recorder.emitted.clear()
    async with world.leading():
        await asyncio.sleep(10)
        assert len(world.writer.writes) <= 1
        assert world.said() == [("Pod s", reasons.MGPU_RECORD_MISSING)]


async def test_a_term_that_is_over_writes_no_more() -> None:
    world, over = World(bound("p")), term()
    over.end()
    async with world.leading(over):
        assert world.writer.writes == []


async def test_with_the_feature_off_nothing_is_looked_at() -> None:
    world = World(bound("p"), settings=Settings.model_validate({"features": {"mgpu": False}}))
    async with world.leading():
        world.shows(bound("q"))
        await asyncio.sleep(1)
        assert (world.writer.writes, world.said()) == ([], [])


async def test_garbage_of_every_kind_ends_nothing() -> None:
    junk: list[Any] = ["", "x", "0,", "1e3", "9" * 1000, "0" * 70_000, "-1", "\0", "99999"]
    world = World(*(bound(f"p{n}", 1, text) for n, text in enumerate(junk)))
    async with world.leading():
        for n, text in enumerate(reversed(junk)):
            world.shows(bound(f"p{n}", 1, text, version=2).cards_per_container(n - 1))
        await asyncio.sleep(10)
        world.shows(bound("good", 1))
        await asyncio.sleep(1)
        assert world.written()[-1][0] == "good"
