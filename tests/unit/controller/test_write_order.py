"""A gang with tasks is written in an order of which every beginning can be made whole: members beyond what its tasks must have come last."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.lifting import Lifter
from controller.metrics import Metrics
from kube import errors
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder, Writer, term

pytestmark = pytest.mark.looptime

CUT = errors.ConnectionFailed("cut")
DENIED = errors.Forbidden(403, "Forbidden", "a webhook says no", None, None)
MEMBERS = ("v0", "v1", "w2", "w3")
"""One of task v and two of task w have to start together; `v1` comes beyond them."""
NEEDED = {"v0", "w2", "w3"}


def member(name: str) -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_group("g").task(name[0]).gated()
    return built.created(f"2024-01-01T00:00:0{name[1]}Z")


def stored(name: str) -> PodBuilder:
    built = a_pod(name).gpu(1).card("A").in_group("g").task(name[0]).together(3)
    return built.charged("q").assigned({"A": 1}).put("metadata", "resourceVersion", value="9")


class World:
    """Whatever is stored is answered as it is then."""

    def __init__(self, quota: int = 8) -> None:
        self.caches = caches([a_node("n").card("A", 500).view()])
        self.writer = Writer()
        show(self.caches.queues, "q", a_queue("q").cards({"A": quota}).view())
        group = a_group("g").in_queue("q").min_member(3).min_task("v", 1).min_task("w", 2).view()
        show(self.caches.groups, group.key, group)
        for name in MEMBERS:
            self.shows(member(name))
            self.writer.answered[name] = stored(name).build()
        self.recorder = Recorder()
        self.announcements = Announcements(self.recorder)
        metrics = Metrics(CollectorRegistry())
        self.lifter = Lifter(self.writer, self.caches, self.announcements, metrics, settle_s=0.0)

    def shows(self, built: PodBuilder) -> None:
        self.writer.stored[built.view().key] = built.build()
        show(self.caches.pods, built.view().key, built.view())

    @property
    def tried(self) -> list[str]:
        return [write.name for write in self.writer.writes]


async def test_those_beyond_are_written_last() -> None:
    world = World()
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(0.1)
        assert set(world.tried[:3]) == NEEDED
        assert world.tried[3:] == ["v1"]


@pytest.mark.parametrize("failing", [CUT, DENIED], ids=["cut", "denied"])
async def test_while_one_that_is_needed_does_not_get_in_nobody_comes_beyond(
    failing: errors.KubeError,
) -> None:
    """Else the place would be taken that it needs, and the gang never start with it."""
    world = World()
    world.writer.answer_to = lambda name: failing if name == "w3" else None
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(100)
        assert "w3" in world.tried
        assert "v1" not in world.tried
        world.writer.answer_to = lambda _name: None
        await asyncio.sleep(400)
        assert world.tried[-1] == "v1"
        assert world.tried.count("v1") == 1


async def test_what_those_beyond_were_promised_is_given_back_with_the_lift_that_they_wait_for() -> None:
    world = World()
    other = a_pod("other").gpu(5).card("A").in_queue("q").gated().created("2024-01-01T00:00:09Z")
    world.shows(other)
    world.writer.answered["other"] = a_pod("other").gpu(5).card("A").charged("q").assigned({"A": 5}).build()
    world.writer.answer_to = lambda name: DENIED if name == "w3" else None
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(10)
        assert "other" in world.tried, "two are in, and one of eight is promised to nobody"
        assert world.caches.ledger.used("q", "A") == 7000
        assert "v1" not in world.tried


async def test_a_needed_member_that_is_deleted_under_way_leaves_nobody_waiting_for_it() -> None:
    world = World()
    world.writer.answer_to = lambda name: CUT if name == "w3" else None
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(1)
        show(world.caches.pods, "ml/w3", None)
        world.writer.answer_to = lambda _name: None
        again = member("w4").created("2024-01-01T00:00:08Z")
        world.writer.answered["w4"] = stored("w4").build()
        world.shows(again)
        await asyncio.sleep(100)
        assert [name for name in world.tried if name != "w3"][-2:] == ["w4", "v1"]


async def test_who_waits_for_others_is_not_said_to_be_refused_and_they_not_to_lack_a_card() -> None:
    """Nothing is known against the one; of the others the task that lacks a member is named."""
    world = World()
    world.writer.answer_to = lambda name: CUT if name == "w3" else None
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(1500)
    said = {(about, reason) for about, reason, *_ in world.recorder.emitted}
    assert ("Pod w3", "LiftRefused") in said
    assert ("Pod v1", "LiftRefused") not in said
    assert ("PodGroup g", "GangIncomplete") in said
    assert "MixedCards" not in {reason for _, reason in said}


@pytest.mark.parametrize("how", ["denied", "deleted"])
async def test_who_comes_beyond_takes_the_place_of_one_that_is_not_let_in_and_goes_before_the_others(
    how: str,
) -> None:
    """Of two that came beyond one is needed now."""
    world = World()
    world.writer.answered["w4"] = stored("w4").build()
    world.shows(member("w4"))
    world.writer.answer_to = lambda name: (DENIED if how == "denied" else CUT) if name == "w3" else None
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(3)
        if how == "deleted":
            assert not {"v1", "w4"} & set(world.tried)
            show(world.caches.pods, "ml/w3", None)
            await asyncio.sleep(5)
        assert world.tried[-2:] == ["w4", "v1"]


async def test_members_that_have_changed_under_way_are_decided_on_before_anybody_gets_what_others_were_promised_for_them() -> (
    None
):
    """One is in, two are needed, and one came beyond them: with its place taken by nobody the gang is made whole first."""
    world = World(quota=4)
    world.writer.answer_to = lambda name: CUT if name in ("w2", "w3") else None
    urgent = a_pod("urgent").gpu(2).card("A").in_queue("q").gated().priority(9)
    async with background(world.announcements.run()), background(world.lifter.run(term())):
        await asyncio.sleep(1)
        world.writer.answer_to = lambda _name: None
        for name in ("w2", "w3"):
            world.shows(member(name).put("metadata", "resourceVersion", value="2"))
        world.shows(urgent)
        await asyncio.sleep(100)
        assert {"v0", "w2", "w3"} <= {
            pod.name for pod in world.caches.pods.values() if not _gated(world, pod.key)
        }
        assert "urgent" not in world.tried


def _gated(world: World, key: str) -> bool:
    latest = world.caches.latest(key)
    return latest is None or latest.gated


async def test_a_pod_that_comes_back_as_a_member_of_another_group_leaves_nothing_in_its_former_one() -> None:
    """While its lift is being written the watch loses it, and shows it again."""
    world = World()
    world.writer.stuck.update(MEMBERS)
    async with background(world.lifter.run(term())):
        await asyncio.sleep(0.5)
        order = world.lifter._writer._order
        assert len(order.under_way("ml/g")) == len(MEMBERS)
        show(world.caches.pods, "ml/w3", None)
        world.shows(a_pod("w3").gpu(1).card("A").in_group("other").gated())
        show(world.caches.groups, "ml/other", a_group("other").in_queue("q").min_member(1).view())
        await asyncio.sleep(0.5)
        assert not [lift.pod.name for lift in order.under_way("ml/g").values() if lift.pod.name == "w3"]
