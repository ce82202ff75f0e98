"""What a leader says again that leaders before have said, and what it leaves to the next one."""

import asyncio
from datetime import UTC, datetime

import pytest

from core import reasons
from core.display.notices import QueueNotice
from kube.event_store import Past, Reference, Words
from kube.resources import NODES, PODS, QUEUES, Resource
from tests.builders import a_pod
from tests.fakes.apiserver import background
from tests.unit.controller.announcing import (
    H200,
    MALFORMED,
    NODE,
    OVER,
    POD,
    QUEUE,
    Records,
    World,
    next_leader,
    stored,
)

pytestmark = pytest.mark.looptime

LET_IN = a_pod("p").gpu(2).card(H200).in_queue("q").charged("q")


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


@pytest.mark.parametrize(("slow_s", "rest_s"), [(100.0, 0.0), (0.0, 100.0)])
async def test_a_pod_that_is_let_in_while_it_is_read_what_was_said_has_its_end_told_too(
    slow_s: float, rest_s: float
) -> None:
    """Whether it was read by then that it waits or not; of those of which nothing was said nothing is told."""
    world = World(NODE, QUEUE, POD)
    (said,) = await world.decides()
    next_leader(world, Records(stored(said), slow_s=slow_s, rest_s=rest_s))
    async with background(world.announcements.run()):
        await asyncio.sleep(5)
        world.announcements.pod_changed(POD.view(), LET_IN.view())
        world.announcements.pod_changed(POD.uid("another").view(), LET_IN.uid("another").view())
        await asyncio.sleep(200)
        assert [event[:2] for event in world.recorder.emitted] == [("Pod p", reasons.LIFTED)]
        assert len(world.announcements._sayings) == 0


@pytest.mark.parametrize("term_s", [5.0, 200.0])
async def test_of_a_pod_that_is_gone_or_a_term_that_has_ended_by_then_nothing_is_told(term_s: float) -> None:
    world = World(NODE, QUEUE, POD)
    (said,) = await world.decides()
    next_leader(world, Records(stored(said), slow_s=100.0))
    async with background(world.announcements.run()):
        await asyncio.sleep(1)
        world.announcements.pod_changed(POD.view(), LET_IN.view())
        if term_s > 100.0:
            world.announcements.pod_changed(LET_IN.view(), None)
        await asyncio.sleep(term_s)
    assert world.announcements._early is None
    async with background(world.announcements.run()):
        await asyncio.sleep(200)
    assert world.recorder.emitted == []


@pytest.mark.parametrize(
    ("kind", "action", "reasons_said"),
    [
        (PODS, "ReadQuota", [OVER, MALFORMED]),
        (PODS, "DiscoverCards", [reasons.CARD_LABELS_CONTRADICT]),
        (QUEUES, "ReadQuota", [f"Reason{number}" for number in range(100)]),
        (NODES, "DiscoverCards", [f"Reason{number}" for number in range(100)]),
    ],
)
async def test_of_what_others_have_said_under_our_name_nothing_is_remembered(
    kind: Resource, action: str, reasons_said: list[str]
) -> None:
    """Of a pod of theirs, which is no queue and no node, or what nobody says: memory is bounded by the objects there are."""
    about = Reference.of(kind, "x", uid="x")
    said = [
        Past("e", about, Words("Warning", one, "text", action), 1, datetime.now(UTC)) for one in reasons_said
    ]
    world = World(POD)
    next_leader(world, Records(*said))
    async with background(world.announcements.run()):
        await asyncio.sleep(5)
        assert len(world.announcements._sayings) == 0
