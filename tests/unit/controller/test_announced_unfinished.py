"""What is said of a gang that was cut short, beside what its members wait for."""

import asyncio
from dataclasses import replace

import pytest

from controller.announcements import Announcements
from core import reasons
from core.affinity import NodeRequirement
from core.catalogue.notes import event_note
from core.objects import Group, Pod
from core.plan.decision import Hold, Lift
from core.refusal import Refusal
from kube.events import Past
from tests.builders import a_group, a_pod
from tests.fakes.apiserver import background
from tests.unit.controller.announcing import Records, World, next_leader, stored

pytestmark = pytest.mark.looptime

MEMBER = a_pod("p").gpu(2).card("A").in_queue("q").in_gang("train", 4)
WAITS, LET_IN = MEMBER.gated().view(), MEMBER.charged("q").view()
GROUP = a_group("g").view()
GANG = replace(GROUP, gang="train")
NOTE = "of 4 members that were let in together 3 are in"
FIRST, SECOND, UNFINISHED = reasons.NO_FREE_CARD, reasons.QUEUE_NOT_FOUND, reasons.GANG_UNFINISHED


def held(announcements: Announcements, reason: str, group: Group | None = None) -> None:
    announcements.held(Hold(WAITS, "q", Refusal(reason, "text"), group=group))


def cut_short(announcements: Announcements, group: Group, pod: Pod = WAITS) -> None:
    if group.stored:
        announcements.unfinished(group, UNFINISHED, NOTE)
    else:
        announcements.unfinished_member(pod, UNFINISHED, NOTE)


async def waits_for_two_reasons(world: World, group: Group | None = None) -> None:
    """One after the other, a minute each."""
    for reason in (FIRST, SECOND):
        held(world.announcements, reason, group)
        await asyncio.sleep(60)
    assert told(world) == [FIRST, SECOND]


def said_before(note: str) -> Past:
    """By the leader before, five minutes ago."""
    return stored(("Pod p", UNFINISHED, event_note(UNFINISHED, note)), "WatchReservation", age_s=300.0)


def told(world: World, about: str = "Pod p") -> list[str]:
    """The reasons."""
    return [event[1] for event in world.recorder.emitted if event[0] == about]


async def test_a_member_that_waits_has_two_events_an_hour_this_one_among_them() -> None:
    """It comes when there may be one more: nobody is deleted of a gang of which all that are left wait."""
    world = World()
    async with background(world.announcements.run()):
        await waits_for_two_reasons(world)
        cut_short(world.announcements, GANG)
        await asyncio.sleep(3480 - 5)
        assert len(told(world)) == 2
        await asyncio.sleep(10)
        assert told(world)[2:] == [UNFINISHED]
        held(world.announcements, FIRST)
        await asyncio.sleep(40)
        assert len(told(world)) == 3
        await asyncio.sleep(20)
        assert told(world)[3:] == [FIRST]


async def test_neither_a_lift_that_comes_to_nothing_nor_a_queue_that_is_closed_for_a_while_loses_it() -> None:
    """Nobody says it again."""
    world = World()
    async with background(world.announcements.run()):
        await waits_for_two_reasons(world)
        cut_short(world.announcements, GANG)
        world.announcements.lifted(Lift(WAITS, "q", {}, {}, NodeRequirement(), WAITS))
        closed = Refusal(reasons.QUEUE_NOT_OPEN, "text")
        world.announcements.held(Hold(WAITS, "q", closed, announced=False))
        await asyncio.sleep(3600)
        assert told(world)[2:] == [UNFINISHED]


async def test_a_member_that_holds_quota_is_told_at_once_whatever_it_was_told_while_it_waited() -> None:
    """It may be deleted within a minute. What was to be said of it as one that waits is over."""
    world = World()
    async with background(world.announcements.run()):
        await waits_for_two_reasons(world)
        world.announcements.overdue(
            WAITS, reasons.RESERVED_TOO_LONG, "what keeps in mind that it has had two"
        )
        cut_short(world.announcements, GANG)
        world.announcements.pod_changed(WAITS, LET_IN)
        assert told(world)[2:] == [reasons.RESERVED_TOO_LONG, reasons.LIFTED]
        await asyncio.sleep(1000)
        for _ in range(2):
            cut_short(world.announcements, GANG, LET_IN)
        assert told(world)[4:] == [UNFINISHED]
        await asyncio.sleep(10_000)
    assert len(told(world)) == 5


async def test_on_a_podgroup_it_is_said_at_once_and_leaves_what_the_podgroup_waits_for_alone() -> None:
    """Members of it may be deleted within a minute."""
    world = World()
    async with background(world.announcements.run()):
        await waits_for_two_reasons(world, GROUP)
        cut_short(world.announcements, GROUP)
        assert told(world, "PodGroup g") == [FIRST, SECOND, UNFINISHED]
        await asyncio.sleep(3485)
        held(world.announcements, FIRST, GROUP)
        await asyncio.sleep(5)
        assert told(world, "PodGroup g")[3:] == [FIRST]
    assert UNFINISHED not in told(world)


async def test_of_a_gang_that_is_finished_by_then_nothing_is_said() -> None:
    world = World()
    async with background(world.announcements.run()):
        await waits_for_two_reasons(world)
        cut_short(world.announcements, GANG)
        await asyncio.sleep(60)
        world.announcements.finished_member(WAITS)
        await asyncio.sleep(10_000)
        assert len(told(world)) == 2


async def test_a_member_that_is_let_in_while_it_is_read_what_was_said_is_told_that_too() -> None:
    """It may be deleted for that; only what it waited for is over."""
    world = World()
    next_leader(world, Records(stored(("Pod p", FIRST, event_note(FIRST, "text"))), slow_s=100.0))
    async with background(world.announcements.run()):
        await asyncio.sleep(1)
        world.announcements.pod_changed(WAITS, LET_IN)
        cut_short(world.announcements, GANG, LET_IN)
        await asyncio.sleep(200)
    assert sorted(told(world)) == [UNFINISHED, reasons.LIFTED]


@pytest.mark.parametrize("member", [WAITS, LET_IN])
async def test_a_new_leader_does_not_say_it_again(member: Pod) -> None:
    world = World()
    next_leader(world, Records(said_before(NOTE)))
    async with background(world.announcements.run()):
        await asyncio.sleep(1)
        cut_short(world.announcements, GANG, member)
        await asyncio.sleep(10_000)
    assert told(world) == []


@pytest.mark.parametrize(("member", "wait_s"), [(WAITS, 2600.0), (LET_IN, 0.0)])
async def test_a_new_leader_counts_it_among_what_a_member_was_told_while_it_waits(
    member: Pod, wait_s: float
) -> None:
    world = World()
    before = stored(("Pod p", FIRST, event_note(FIRST, "text")), age_s=1000.0)
    next_leader(world, Records(before, said_before("of 2 members that were let in together 1 is in")))
    async with background(world.announcements.run()):
        cut_short(world.announcements, GANG, member)
        if wait_s:
            await asyncio.sleep(wait_s - 5)
            assert told(world) == []
        await asyncio.sleep(10)
        assert told(world) == [UNFINISHED]


async def test_an_event_that_is_heard_twice_counts_once() -> None:
    """A list that fails is begun anew."""
    world = World()
    before = stored(("Pod p", FIRST, event_note(FIRST, "text")), age_s=1000.0)
    next_leader(world, Records(before, before))
    async with background(world.announcements.run()):
        held(world.announcements, SECOND)
        await asyncio.sleep(60)
        assert told(world) == [SECOND]
