"""What people read in events: the exact words on pods and PodGroups, on change only, and nothing about closed queues."""

import asyncio
from collections import Counter

import pytest

from controller.announcements import Announcements
from core import reasons
from core.affinity import NodeRequirement
from core.display.notices import QueueNotice
from core.plan.decision import Hold, Lift
from tests.builders import a_group, a_pod
from tests.builders.objects import GroupBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.announcing import (
    BOUND,
    GROUP,
    H200,
    JOB,
    MALFORMED,
    MEMBER,
    NODE,
    OVER,
    POD,
    QUEUE,
    Records,
    World,
    next_leader,
)
from tests.unit.controller.fakes import Recorder

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
@pytest.mark.parametrize("group", [None, GROUP.cards({H200: 9}), a_group("g").in_queue("q").min_member(3)])
async def test_a_queue_that_is_not_open_is_silent(state: str, group: GroupBuilder | None) -> None:
    things = (POD,) if group is None else (JOB, group, MEMBER)
    world = World(NODE, QUEUE.state(state), *things)
    assert await world.decides() == []
    (decision,) = world.planner.decide("q")
    assert isinstance(decision, Hold)


async def test_a_reason_is_said_once_whatever_its_numbers_and_another_one_again() -> None:
    world = World(NODE, QUEUE, POD)
    assert len(await world.decides()) == 1
    assert await world.decides() == []
    world.shows(QUEUE.cards({H200: 0}))
    assert await world.decides() == []
    world.shows(QUEUE.cards({H200: 2}).capability(cpu=1), POD.request("cpu", 2))
    assert [event[1] for event in await world.decides()] == [reasons.INSUFFICIENT_CPU_QUOTA]


async def test_a_reason_is_said_when_it_has_lasted_a_moment() -> None:
    """With the numbers that it has then; a pod that is lifted before that has no event."""
    world = World(NODE, QUEUE, POD)
    async with background(world.announcements.run()):
        world.passes()
        await asyncio.sleep(0.9)
        assert world.recorder.emitted == []
        world.shows(QUEUE.cards({H200: 0}))
        world.passes()
        await asyncio.sleep(0.2)
        ((_, _, note),) = world.recorder.emitted
        assert "capability is <0>. " in note
        world.shows(POD.uid("q").put("metadata", "name", value="q"))
        world.passes()
        await asyncio.sleep(0.5)
        world.shows(QUEUE.cards({H200: 8}))
        world.passes()
        await asyncio.sleep(10)
    assert len(world.recorder.emitted) == 1


async def test_a_pod_that_waits_has_two_events_an_hour_and_the_last_is_about_the_present() -> None:
    """As many as can be seen of it at any time; in between the newest reason waits for its turn."""
    cpu = QUEUE.cards({H200: 8}).capability(cpu=1)
    world, loop = World(NODE, QUEUE, POD.request("cpu", 2)), asyncio.get_running_loop()
    async with background(world.announcements.run()):
        for _ in range(6):
            for queue in (QUEUE, cpu, QUEUE.cards({H200: 8}).capability(memory=1), cpu):
                world.shows(queue, POD.request("cpu", 2).request("memory", 2))
                world.passes()
                await asyncio.sleep(60)
        said = [event[1] for event in world.recorder.emitted]
        assert said == [reasons.INSUFFICIENT_SCALAR_QUOTA, reasons.INSUFFICIENT_CPU_QUOTA]
        world.shows(QUEUE)
        world.passes()
        await asyncio.sleep(3601.5 - loop.time())
        said = [event[1] for event in world.recorder.emitted]
        assert said[2:] == [reasons.INSUFFICIENT_SCALAR_QUOTA]


async def test_members_that_come_one_after_the_other_are_not_told_that_the_gang_is_incomplete() -> None:
    """Not while they come, nor when it is complete and lifted; once it stands still each is told once."""
    gang = a_group("g").in_queue("q").min_member(100)
    members = [
        POD.gpu(1).in_group("g").uid(f"u{n}").put("metadata", "name", value=f"p{n}") for n in range(100)
    ]
    world = World(NODE, QUEUE.cards({H200: 8}), gang)
    async with background(world.announcements.run()):
        for member in members[:-1]:
            world.shows(member)
            world.passes()
            await asyncio.sleep(0.25)
        assert world.recorder.emitted == []
        await asyncio.sleep(3)
        assert len(world.recorder.emitted) == 100
        assert {event[1] for event in world.recorder.emitted} == {reasons.GANG_INCOMPLETE}
        assert len({event[2] for event in world.recorder.emitted}) == 1
        world.shows(members[-1])
        world.passes()
        await asyncio.sleep(2)
        assert Counter(event[0] for event in world.recorder.emitted) == {
            "PodGroup g": 2,
            **{f"Pod p{number}": 2 for number in range(99)},
            "Pod p99": 1,
        }
        world.passes()
        await asyncio.sleep(10000)
        assert len(world.recorder.emitted) == 201


async def test_a_gang_that_never_stands_still_is_told_after_half_a_minute() -> None:
    gang = a_group("g").in_queue("q").min_member(1000)
    world = World(NODE, QUEUE.cards({H200: 8}), gang)
    async with background(world.announcements.run()):
        for number in range(40):
            world.shows(POD.in_group("g").uid(f"u{number}").put("metadata", "name", value=f"p{number}"))
            world.passes()
            await asyncio.sleep(1)
            assert bool(world.recorder.emitted) is (number >= 30)


async def test_six_hundred_pods_of_three_hundred_jobs_have_two_events_at_most() -> None:
    """Two members each, created by turns; eighty are lifted at once, and as quota comes others follow."""
    world = World(NODE.card(H200, 600), QUEUE.cards({H200: 80}))
    loop = asyncio.get_running_loop()
    waited: dict[str, float] = {}
    gone: set[str] = set()

    def passes() -> None:
        for decision in world.planner.decide("q"):
            name = f"Pod {decision.pod.name}"
            if isinstance(decision, Hold):
                world.announcements.held(decision)
                waited.setdefault(name, loop.time())
            else:
                world.announcements.lifted(decision)
                waited[name] = loop.time() - waited.get(name, loop.time())
                gone.add(name)

    async with background(world.announcements.run()):
        for first in range(0, 300, 10):
            for member in range(2):
                for job in range(first, first + 10):
                    name = f"p{job}-{member}"
                    pod = a_pod(name).gpu(1).card(H200).in_queue("q").gated().in_group(f"g{job}")
                    world.shows(a_group(f"g{job}").in_queue("q").min_member(2), pod.uid(name))
                passes()
                await asyncio.sleep(0.2)
        for quota in range(100, 400, 20):
            world.shows(QUEUE.cards({H200: quota}))
            passes()
            await asyncio.sleep(0.5)
        await asyncio.sleep(10)
    counted = Counter(event[0] for event in world.recorder.emitted)
    quick = {name for name in gone if waited[name] < 1.0}
    assert len(quick) >= 80
    assert not counted.keys() & quick
    assert {name: counted[name] for name in waited if name not in gone} == dict.fromkeys(
        waited.keys() - gone, 1
    )
    assert max(counted.values()) == 1


async def test_what_a_lift_that_was_refused_leaves_behind_is_not_said_again() -> None:
    """The pod still waits; it is forgotten when its gate is gone, or it is."""
    world = World(NODE, QUEUE, POD)
    await world.decides()
    (decision,) = world.planner.decide("q")
    world.announcements.lifted(Lift(decision.pod, "q", {}, {}, NodeRequirement(), decision.pod))
    assert await world.decides() == []
    for new in (a_pod("p").gpu(2).card(H200).in_queue("q").view(), None):
        world.announcements.pod_changed(POD.view(), new)
        assert len(world.announcements._sayings) == 0
        assert len(await world.decides()) == 1


async def test_a_podgroup_that_waits_as_a_whole_for_another_time_hears_it_again() -> None:
    world = World(NODE, QUEUE.cards({H200: 9}), JOB, GROUP.cards({H200: 10}), MEMBER)
    assert len(await world.decides()) == 2
    (hold,) = world.planner.decide("q")
    world.announcements.lifted(Lift(hold.pod, "q", {}, {}, NodeRequirement(), hold.pod))
    assert [event[0] for event in await world.decides()] == ["PodGroup g"]


async def test_what_waits_to_be_written_is_taken_back_with_a_lift_and_then_counts_as_not_said() -> None:
    world = World(NODE, QUEUE, POD)
    await world.decides()
    world.recorder.waiting.add("uid-ml-p")
    (decision,) = world.planner.decide("q")
    world.announcements.lifted(Lift(decision.pod, "q", {}, {}, NodeRequirement(), decision.pod))
    assert ("uid-ml-p", "Lift") in world.recorder.retracted
    assert len(await world.decides()) == 1


async def test_a_pod_behind_a_queue_that_closes_meanwhile_hears_nothing() -> None:
    world = World(NODE, QUEUE, POD)
    async with background(world.announcements.run()):
        world.passes()
        await asyncio.sleep(0.5)
        world.shows(QUEUE.state("Closed"))
        world.passes()
        await asyncio.sleep(5)
    assert world.recorder.emitted == []


async def test_a_rollout_that_waits_for_its_own_pods_is_told_beside_the_reason() -> None:
    old = BOUND.of_deployment("web", "aaa")
    new = POD.gpu(1).of_deployment("web", "bbb")
    world = World(NODE, QUEUE, old, new)
    said = await world.decides()
    assert [event[:2] for event in said] == [
        ("Pod p", reasons.INSUFFICIENT_SCALAR_QUOTA),
        ("Pod p", reasons.ROLLOUT_NEEDS_QUOTA),
    ]
    assert await world.decides() == []


async def test_a_queue_is_told_what_is_news_and_again_after_it_was_right() -> None:
    recorder, queue = Recorder(), QUEUE.view()
    announcements = Announcements(recorder)
    for notices in (
        [QueueNotice(OVER, "first!", "1")],
        [QueueNotice(OVER, "same news in other words", "1")],
        [QueueNotice(OVER, "second", "2"), QueueNotice(MALFORMED, "beside", "1")],
        [],
        [QueueNotice(OVER, "third", "2")],
    ):
        announcements.about_queue(queue, notices)
    waits = "Wait until pods end, delete some, or raise the queue's quota."
    assert [note for *_, note in recorder.emitted] == [
        f"first! {waits}",
        f"second. {waits}",
        'beside. Write a JSON object of whole numbers, such as {"NVIDIA-H200": 8}.',
        f"third. {waits}",
    ]
    announcements.gone(queue.uid)
    announcements.about_queue(queue, [QueueNotice(OVER, "of another queue under the name", "2")])
    assert len(recorder.emitted) == 5


async def test_nothing_is_said_by_a_replica_that_does_not_lead() -> None:
    world = World(NODE, QUEUE, POD)
    next_leader(world, Records())
    world.passes()
    world.announcements.about_queue(QUEUE.view(), [QueueNotice(OVER, "text", "1")])
    await asyncio.sleep(100)
    assert world.recorder.emitted == []


async def test_an_eviction_is_said_at_once_and_a_late_pod_once() -> None:
    recorder, pod = Recorder(), BOUND.view()
    announcements = Announcements(recorder)
    for _ in range(2):
        announcements.overdue(pod, reasons.RESERVED_TOO_LONG, "since 2030-01-01T00:00:00Z, more than 600 s")
    announcements.evicted(pod, reasons.RESERVATION_EVICTED, "deleted")
    assert [event[1] for event in recorder.emitted] == [
        reasons.RESERVED_TOO_LONG,
        reasons.RESERVATION_EVICTED,
    ]


async def test_of_a_gang_without_object_everything_is_said_on_its_members() -> None:
    members = [a_pod(f"m{n}").gpu(1).card(H200).in_queue("q").gated().in_gang("train", 4) for n in range(3)]
    world = World(NODE, QUEUE, *members)
    said = await world.decides(after_s=30.0)
    assert {(about, reason) for about, reason, _ in said} == {
        (f"Pod m{number}", reasons.GANG_INCOMPLETE) for number in range(3)
    }
    assert all("gang ml/train needs 4 more members" in note for _, _, note in said)
    before = len(world.recorder.emitted)
    async with background(world.announcements.run()):
        world.announcements.unfinished_member(members[0].view(), reasons.GANG_UNFINISHED, "cut short")
        await asyncio.sleep(5)
    assert [event[:2] for event in world.recorder.emitted[before:]] == [("Pod m0", reasons.GANG_UNFINISHED)]
