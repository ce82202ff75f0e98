"""What a leader says again that leaders before have said, and what it leaves to the next one."""

import asyncio

import pytest

from core import reasons
from core.display.notices import QueueNotice
from tests.fakes.apiserver import background
from tests.unit.controller.announcing import (
    H200,
    NODE,
    POD,
    QUEUE,
    Records,
    World,
    next_leader,
    stored,
)

pytestmark = pytest.mark.looptime


async def test_a_new_leader_says_nothing_again_about_six_hundred_pods_that_wait() -> None:
    """Whatever the numbers are by then; what is new it says, once it knows what was said."""
    pods = [POD.uid(f"uid-ml-p{n}").put("metadata", "name", value=f"p{n}") for n in range(600)]
    world = World(NODE, QUEUE, *pods)
    said = await world.decides()
    assert len(said) == 600
    next_leader(world, Records(*map(stored, said), slow_s=8.0))
    world.shows(QUEUE.cards({H200: 0}), POD.uid("new").put("metadata", "name", value="new"))
    async with background(world.announcements.run()):
        for _ in range(3):
            world.passes()
            await asyncio.sleep(3)
        assert [event[0] for event in world.recorder.emitted] == ["Pod new"]
        await asyncio.sleep(10)
    assert [event[0] for event in world.recorder.emitted] == ["Pod new"]


async def test_the_limit_on_events_outlives_a_leader_and_the_latest_event_is_what_was_said_last() -> None:
    world = World(NODE, QUEUE, POD)
    (said,) = await world.decides()
    other = ("Pod p", reasons.QUEUE_NOT_FOUND, "Queue <q> does not exist; the pod waits until it is created")
    next_leader(world, Records(stored(other, age_s=300.0), stored(said, age_s=1000.0)))
    async with background(world.announcements.run()):
        world.passes()
        await asyncio.sleep(2500)
        assert world.recorder.emitted == []
        await asyncio.sleep(200)
        assert [event[1] for event in world.recorder.emitted] == [reasons.INSUFFICIENT_SCALAR_QUOTA]


async def test_events_about_what_does_not_exist_any_more_are_not_remembered() -> None:
    world = World(NODE, QUEUE, POD)
    (said,) = await world.decides()
    next_leader(world, Records(stored(said)), lambda _: False)
    assert len(await world.decides()) == 1
    assert len(world.announcements._sayings) == 1


async def test_a_new_leader_says_of_a_queue_what_is_news_alone() -> None:
    """That less is used is none, a quota that was cut is, and so is what was right in between."""
    text = "Queue <q> uses more than its quota: <A> used <4000>, but capability is <1000>; nothing is evicted"
    less = QueueNotice(reasons.QUOTA_EXCEEDED, text.replace("4000", "3000"), "A=1000")
    cut = QueueNotice(reasons.QUOTA_EXCEEDED, text.replace("<1000>", "<0>"), "A=0")
    for notices, expected in (([less], 0), ([cut], 1), ([less, less], 0), ([], 0)):
        world = World()
        past = stored(("Queue q", reasons.QUOTA_EXCEEDED, text), "ReadQuota")
        next_leader(world, Records(past))
        async with background(world.announcements.run()):
            await asyncio.sleep(1)
            world.announcements.about_queue(QUEUE.view(), notices)
            await asyncio.sleep(1)
            assert len(world.recorder.emitted) == expected
            world.announcements.about_queue(QUEUE.view(), [])
            world.announcements.about_queue(QUEUE.view(), [less])
            assert len(world.recorder.emitted) == expected + 1


async def test_what_a_leader_leaves_unwritten_is_left_to_the_next_and_said_again_when_it_leads_again() -> (
    None
):
    world, records = World(NODE, QUEUE, POD), Records()
    next_leader(world, records)
    assert len(await world.decides()) == 1
    world.recorder.waiting.add("uid-ml-p")
    assert await world.decides() == []
    world.recorder.waiting.clear()
    assert len(await world.decides()) == 1
    assert await world.decides() == []
    assert records.reads == 4
