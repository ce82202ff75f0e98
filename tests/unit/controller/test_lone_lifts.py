"""What a lift of one pod by itself rests on is read from the API server before the first of its group is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.lifting import Lifter
from controller.lone_lifts import ABSENT_S, LoneLifts
from controller.metrics import Metrics
from core import names, reasons
from kube import errors
from tests.builders import a_group, a_node, a_pod, a_queue, a_scheduling_group
from tests.builders.objects import GroupBuilder, PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, come_to, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

CUT = errors.ConnectionFailed("cut")
BROKEN = errors.ServerError(500, "InternalError", "broken", None, None)


def member(name: str, group: str = "g", second: int = 0) -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_queue("q").gated().scheduler("volcano")
    if group:
        built = built.in_group(group)
    built = built.created(f"2024-01-01T00:00:{second:02}Z")
    return built.put("metadata", "resourceVersion", value="1")


def group(minimum: int = 1, uid: str = "one", name: str = "g") -> GroupBuilder:
    return a_group(name).in_queue("q").min_member(minimum).uid(uid)


class World:
    """Queue q; the watch shows what the test says, reads find what the test stores."""

    def __init__(self, *pods: PodBuilder, quota: int = 8) -> None:
        self.caches: Caches = caches([a_node("n").card("A", 500).view()], [each.view() for each in pods])
        show(self.caches.queues, "q", a_queue("q").cards({"A": quota}).view())
        self.writer, self.recorder = Writer(), Recorder()
        for each in pods:
            self.writer.stored[each.view().key] = each.build()
        self.announcements = Announcements(self.recorder)
        self.lifter = Lifter(
            self.writer, self.caches, self.announcements, Metrics(CollectorRegistry()), settle_s=0.001
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background(self.announcements.run()), background(self.lifter.run(term())):
            await asyncio.sleep(0.1)
            yield

    def shows(self, built: GroupBuilder) -> None:
        show(self.caches.groups, built.view().key, built.view())

    def stores(self, built: GroupBuilder) -> None:
        self.writer.stored[built.view().key] = built.build()

    def pod_shown(self, built: PodBuilder) -> None:
        show(self.caches.pods, built.view().key, built.view())

    def names(self) -> list[str]:
        return sorted({write.name for write in self.writer.writes})

    def reads(self, name: str = "g") -> int:
        return self.writer.reads.count(name)

    def used(self) -> int:
        return self.caches.ledger.used("q", "A") // 1000


# -- what was raised, made anew or has gone ------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [group(4), group(4, uid="another")], ids=["raised minMember", "made anew"])
async def test_a_member_of_a_group_that_needs_more_by_now_is_not_lifted_alone(stored: GroupBuilder) -> None:
    world = World(member("a"))
    world.shows(group(1))
    world.stores(stored)
    async with world.running():
        await asyncio.sleep(60)
        assert (world.names(), world.used()) == ([], 0)
        assert world.reads() == 1, "what was read is known: nothing is decided by the old state again"
        for number in range(3):
            world.pod_shown(member(f"b{number}"))
        await asyncio.sleep(1)
        assert world.names() == ["a", "b0", "b1", "b2"]
        assert world.reads() == 1, "gangs are lifted together without a question"


async def test_a_member_of_a_group_that_is_gone_waits_for_it() -> None:
    world = World(member("a"))
    world.shows(group(1))
    async with world.running():
        await asyncio.sleep(60)
        assert (world.names(), world.used()) == ([], 0)
        assert world.caches.groups.get("ml/g") is None
        world.stores(group(1, uid="anew"))
        world.shows(group(1, uid="anew"))
        await asyncio.sleep(1)
        assert world.names() == ["a"]


async def test_a_watch_that_shows_an_older_state_again_lets_nobody_through() -> None:
    world = World(member("a"))
    world.shows(group(1))
    world.stores(group(4, uid="another"))
    async with world.running():
        show(world.caches.groups, "ml/g", None)
        world.shows(group(1, uid="between"))
        await asyncio.sleep(10)
        assert (world.names(), world.used()) == ([], 0)


async def test_what_the_watch_shows_while_it_is_read_is_asked_about_again() -> None:
    world = World(member("a"))
    world.shows(group(1))
    world.stores(group(1))
    read = world.writer.get

    async def late(*args: object, **more: object) -> object:
        found = await read(*args, **more)  # type: ignore[arg-type]
        if world.reads() == 1:
            world.stores(group(4))
            world.shows(group(4))
        return found

    world.writer.get = late  # type: ignore[method-assign, assignment]
    async with world.running():
        await asyncio.sleep(10)
        assert world.names() == []
        assert world.caches.ledger.groups.progress(group(4).view()).minimum.members == 4


async def test_one_that_came_and_went_while_it_was_read_is_gone_once_the_watch_is_past_it() -> None:
    world = World()
    world.stores(group(2).put("metadata", "resourceVersion", value="10"))
    await LoneLifts(world.writer, world.caches).ask("ml/g")
    come_to(world.caches.groups, "9")
    assert world.caches.groups.get("ml/g") is not None
    come_to(world.caches.groups, "10")
    assert world.caches.groups.get("ml/g") is None


async def test_a_404_that_discovery_does_not_bear_out_is_no_answer() -> None:
    world = World(member("a"))
    world.shows(group(1))
    world.writer.served = False
    async with world.running():
        await asyncio.sleep(5)
        assert (world.names(), world.used()) == ([], 1)
        assert world.caches.groups.get("ml/g") is not None
        world.stores(group(1))
        await asyncio.sleep(6)
        assert world.names() == ["a"]


# -- what it costs -------------------------------------------------------------------------------------------------


async def test_there_is_one_question_for_all_members_and_none_once_one_is_in() -> None:
    world = World(*(member(f"p{number:03}", second=number % 60) for number in range(300)), quota=310)
    world.shows(group(1))
    world.stores(group(1))
    async with world.running():
        await asyncio.sleep(5)
        assert len(world.names()) == 300
        assert world.reads() == 1
        in_now = a_pod("p000").gpu(1).card("A").in_queue("q").in_group("g").charged("q").assigned({"A": 1})
        world.pod_shown(in_now.put("metadata", "resourceVersion", value="2"))
        await asyncio.sleep(60)
        world.shows(group(1).phase("Running"))
        world.pod_shown(member("later"))
        await asyncio.sleep(1)
        assert "later" in world.names()
        assert world.reads() == 1


async def test_a_gang_and_a_pod_of_another_scheduler_ask_nothing() -> None:
    alone = a_pod("alone").gpu(1).card("A").in_queue("q").gated()
    world = World(member("a"), member("b"), alone.put("metadata", "resourceVersion", value="1"))
    world.shows(group(2))
    async with world.running():
        assert world.names() == ["a", "alone", "b"]
        assert (world.writer.reads, world.writer.discoveries) == ([], 0)


# -- answers that do not come --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [CUT, BROKEN])
async def test_a_lost_answer_is_asked_for_again_and_the_slots_are_others_meanwhile(
    lost: errors.KubeError,
) -> None:
    world = World(*(member(f"p{number:02}") for number in range(40)), member("other", "h"), quota=50)
    world.shows(group(1))
    world.stores(group(1))
    world.shows(group(1, name="h"))
    world.stores(group(1, name="h"))
    world.writer.failing_reads.extend([lost, lost])
    async with world.running():
        await asyncio.sleep(10)
        assert len(world.names()) == 41
        assert world.reads() + world.reads("h") == 4, "one question for all, whatever becomes of it"


async def test_a_question_that_is_never_answered_gives_the_quota_back() -> None:
    world = World(member("a"), quota=1)
    world.shows(group(1))
    world.writer.failing_reads.extend([CUT] * 100)
    async with world.running():
        await asyncio.sleep(45)
        world.pod_shown(member("b", "", 30).scheduler("default-scheduler"))
        await asyncio.sleep(1)
        assert world.names() == ["b"]
        assert ("Pod a", reasons.LIFT_REFUSED) in [event[:2] for event in world.recorder.emitted]


# -- whether there are PodGroups at all ----------------------------------------------------------------------------


async def test_a_pod_of_volcano_waits_for_its_group_where_discovery_knows_podgroups_before_the_list_does() -> (
    None
):
    world = World(member("a", ""))
    async with world.running():
        await asyncio.sleep(10)
        assert (world.names(), world.used()) == ([], 0)
        assert world.writer.discoveries == 1
        world.pod_shown(member("b", ""))
        await asyncio.sleep(200)
        assert (world.names(), world.writer.discoveries) == ([], 1), "that they are served stays known"


async def test_where_there_are_none_it_is_asked_again_once_a_minute() -> None:
    world = World(member("a", ""), quota=100)
    world.writer.served = False
    async with world.running():
        for number in range(20):
            world.pod_shown(member(f"p{number}", ""))
            await asyncio.sleep(1)
        assert len(world.names()) == 21
        assert world.writer.discoveries == 1
        await asyncio.sleep(ABSENT_S)
        world.writer.served = True
        world.pod_shown(member("late", ""))
        await asyncio.sleep(10)
        assert "late" not in world.names()
        assert world.writer.discoveries == 2


async def test_a_discovery_that_fails_lets_nobody_through() -> None:
    world = World(member("a", ""))
    world.writer.failing_discoveries.extend([BROKEN, CUT])
    async with world.running():
        await asyncio.sleep(10)
        assert world.names() == []
        assert world.writer.discoveries == 3


# -- PodGroups of Kubernetes itself ----------------------------------------------------------------------------------


def of_kubernetes(name: str = "a") -> PodBuilder:
    return member(name, "").scheduler("default-scheduler").in_scheduling_group("g")


async def test_where_they_are_served_before_the_list_knows_it_their_pods_wait() -> None:
    """Where they are not, nothing else is asked."""
    world = World(of_kubernetes())
    world.writer.served = False
    async with world.running():
        assert (world.names(), world.writer.reads, world.writer.discoveries) == (["a"], [], 1)
    world = World(of_kubernetes())
    async with world.running():
        await asyncio.sleep(10)
        assert (world.names(), world.used(), world.writer.discoveries) == ([], 0, 1)


@pytest.mark.parametrize(("served", "lifted"), [(True, []), (False, ["a", "b"])])
async def test_a_gang_whose_members_name_one_that_nobody_has_seen_asks_whether_there_are_any(
    served: bool, lifted: list[str]
) -> None:
    """Else it would be let in smaller than its PodGroup wants it, by a leader that may not read those yet."""
    world = World(*(of_kubernetes(name).in_gang("t", 2) for name in ("a", "b")))
    world.writer.served = served
    async with world.running():
        await asyncio.sleep(10)
        assert (world.names(), world.used(), world.writer.discoveries) == (lifted, len(lifted), 1)


async def test_the_rest_of_such_a_gang_follows_whom_it_belongs_to() -> None:
    """One of them is in already: to hold the others back would leave it waiting for them for ever."""
    waiting = [of_kubernetes(name).in_gang("t", 2) for name in ("a", "b")]
    ungated = waiting[0].put("spec", "schedulingGates", value=[])
    records = {names.GANG_OF_ANNOTATION: waiting[0].view().group_key}
    world = World(ungated.assigned({"A": 1}).recorded(records), waiting[1])
    async with world.running():
        await asyncio.sleep(10)
        assert (world.names(), world.used()) == (["b"], 2)


@pytest.mark.parametrize("count", [1, 4])
async def test_one_that_was_made_anew_is_read_as_such_before_its_first_member_goes_alone(count: int) -> None:
    world = World(of_kubernetes())
    shown = a_scheduling_group("g").min_count(1)
    show(world.caches.kubernetes_groups, "ml/g", shown.view())
    anew = a_scheduling_group("g").min_count(count).uid("anew")
    world.writer.stored["ml/g"] = anew.build()
    async with world.running():
        await asyncio.sleep(10)
        assert world.names() == (["a"] if count == 1 else [])
        assert world.caches.group(anew.view().key) == anew.view()
        assert world.caches.groups.get("ml/g") is None
        assert world.writer.discoveries == 0
        for number in range(count - 1):
            world.pod_shown(of_kubernetes(f"b{number}"))
        await asyncio.sleep(1)
        assert len(world.names()) == count


async def test_what_was_decided_for_one_alone_is_taken_back_when_its_podgroup_turns_out_to_need_more() -> (
    None
):
    world = World(of_kubernetes())
    show(world.caches.kubernetes_groups, "ml/g", a_scheduling_group("g").min_count(1).view())
    world.writer.failing_reads.extend([CUT] * 100)
    async with world.running():
        assert world.used() == 1
        show(world.caches.kubernetes_groups, "ml/g", a_scheduling_group("g").min_count(2).view())
        await asyncio.sleep(1)
        assert (world.names(), world.used()) == ([], 0)
