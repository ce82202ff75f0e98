"""Repairs that are refused, that hang or that somebody undoes: none is tried in a hot loop, none delays another."""

import asyncio

import pytest

from controller import repair
from kube import errors
from kube.workqueue import SLOW_S
from tests.unit.controller.fakes import term
from tests.unit.controller.repairing import World, bound

pytestmark = pytest.mark.looptime(start=1_000_000)


async def test_who_edits_over_and_over_is_answered_ever_more_slowly() -> None:
    world = World(bound("a", 100, "0"))
    async with world.leading():
        for version in range(2, 300):
            world.shows(bound("a", 100, "1" if version % 2 == 0 else "0", version=version))
            await asyncio.sleep(1)
        assert 5 <= len(world.writer.writes) <= 20


async def test_what_is_refused_for_good_is_not_tried_in_a_hot_loop() -> None:
    world = World(bound("p"))
    world.writer.answers.extend([errors.Forbidden(403, "Forbidden", "no rights", None, None)] * 1000)
    async with world.leading():
        await asyncio.sleep(600)
        assert 10 <= len(world.writer.writes) <= 25
        assert world.said() == []


async def test_a_pod_whose_write_hangs_and_fails_delays_no_other() -> None:
    """It hangs for 4 s, each time; 200 others, its neighbours on the node among them, are written within moments."""
    world = World()
    world.writer.stuck.add("bad")
    world.without("bad", "neighbour")
    for number in range(100):
        world.without(f"a{number}", f"b{number}", node=f"n{number}")
    async with world.leading():
        assert len({name for name, _ in world.written()}) == 202
        for number in range(7):
            await asyncio.sleep(2)
            world.without(f"late{number}", f"c{number}")
            world.without(f"elsewhere{number}", node=f"n{number}")
            await asyncio.sleep(0.1)
            late = {name for name, _ in world.written()} & {
                f"late{number}",
                f"c{number}",
                f"elsewhere{number}",
            }
            assert len(late) == 3
        assert 2 <= len([name for name, _ in world.written() if name == "bad"]) <= 5


async def test_pods_that_hang_delay_another_one_for_moments_until_that_is_known_and_then_not_at_all() -> None:
    world, hanging = World(), 200
    for number in range(hanging // 2):
        names = (f"x{number}", f"y{number}")
        world.writer.stuck.update(names)
        world.without(*names, node=f"n{number}")

    async with world.leading():
        known_s = hanging / repair.SIDE_BY_SIDE * SLOW_S
        for number, most_s in enumerate((known_s, *[1.0] * 7)):
            world.without(f"late{number}")
            await asyncio.sleep(most_s)
            assert (f"late{number}", "0") in world.written()


async def test_a_server_that_asks_to_be_left_alone_is_left_alone_whatever_changes() -> None:
    world = World(bound("p"))
    world.writer.answers.append(errors.Throttled(429, "TooManyRequests", "later", None, 20.0))
    async with world.leading():
        for version in range(2, 19):
            world.shows(bound("p", version=version).annotation("cardquota.io/x", str(version)))
            await asyncio.sleep(1)
        assert len(world.writer.writes) == 1
        await asyncio.sleep(4)
        assert [w.body["metadata"]["resourceVersion"] for w in world.writer.writes] == ["1", "18"]


async def test_a_lease_that_is_lost_in_between_ends_the_writes() -> None:
    """Asked right before each request: some are under way, others wait for a slot."""
    world, over = World(), term()
    for number in range(50):
        world.without(f"a{number}", node=f"n{number}")
        world.writer.stuck.add(f"a{number}")
    async with world.leading(over):
        begun = len(world.writer.writes)
        assert repair.SIDE_BY_SIDE <= begun < 50
        over.end()
        await asyncio.sleep(100)
        assert len(world.writer.writes) == begun


async def test_a_record_that_was_undone_before_the_watch_showed_it_is_written_again() -> None:
    world = World(bound("p"))
    async with world.leading():
        assert len(world.writer.writes) == 1
        await asyncio.sleep(10)
        assert len(world.writer.writes) == 1
        world.shows(bound("p", version=3))
        await asyncio.sleep(1)
        assert len(world.writer.writes) == 2
