"""The binding hook with `crossQuota.guardBind`: pods without GPU on nodes with GPUs, whatever their scheduler knows."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core import names, reasons
from core.admission.request import AdmissionRequest, Decision
from core.binding.review import leaderless
from core.objects import pod
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import SETTLED_S, binding, code, records
from tests.unit.core.crossquota.ruling import gpu_node, ruled

GUARDED = ruled(quota={"cpu": 4}, guardBind=True)
SELECTED = {"matchLabels": {"tier": "batch"}}
LABELS = ["tier"]
NODES = [gpu_node("g1"), gpu_node("g2"), a_node("cpu")]


def cpu_pod(name: str, cpu: int = 2) -> PodBuilder:
    return a_pod(name).request("cpu", cpu)


class World:
    """A leading hook over two GPU nodes, each with four cores for pods without GPU, and one without GPUs."""

    def __init__(self, *pods: PodBuilder, settings: Settings = GUARDED) -> None:
        views = [pod.project(item.build(), labels_kept=LABELS) for item in pods]
        self.caches = caches([node.view() for node in NODES], views, settings)
        self.reader = Pods(*(item.build() for item in pods))
        self.asked: list[str] = []
        self.leader: BindingHook | None = None
        self.metrics = Metrics(CollectorRegistry())
        self.hook = BindingHook(self.reader, self.caches, settings, self.metrics, self.ask_leader)
        self.hook.start(term())

    async def ask_leader(self, request: AdmissionRequest) -> Decision:
        self.asked.append(request.name)
        if self.leader is None:
            return leaderless("nobody leads")
        return await self.leader.review_here(request)

    def show(self, name: str, seen: PodBuilder | None) -> None:
        show(self.caches.pods, f"ml/{name}", None if seen is None else seen.view())

    async def bind(self, name: str, node: str = "g1", *, dry_run: bool = False) -> Decision:
        return await self.hook.review(binding(name, node=node, dry_run=dry_run))

    def used(self) -> tuple[int, int]:
        """Cores on the two GPU nodes."""
        first, second = (self.caches.guests.used(node).get("cpu", 0) // 1000 for node in ("g1", "g2"))
        return first, second

    def counted(self, verdict: str, reason: str = "") -> float:
        """The answers of this kind."""
        return float(self.metrics.binds.labels(verdict, reason)._value.get())


def two() -> list[PodBuilder]:
    """Two pods of which a node has room for one."""
    return [cpu_pod("p", 3), cpu_pod("q", 3)]


async def test_two_schedulers_that_race_for_a_node_get_no_more_than_its_quota() -> None:
    """None of the binds is stored yet, so the watch shows nothing of them."""
    world = World(
        *(cpu_pod(f"p{n}", 1).scheduler(("volcano", "default-scheduler")[n % 2]) for n in range(50))
    )
    answers = await asyncio.gather(*(world.bind(f"p{n}") for n in range(50)))
    assert [answer.allowed for answer in answers] == [True] * 4 + [False] * 46
    assert (world.counted("granted"), world.counted("denied", reasons.CROSS_QUOTA_EXCEEDED)) == (4, 46)


async def test_a_refusal_says_how_much_is_used_and_where() -> None:
    world = World(cpu_pod("there", 3).bound_to("g1"), cpu_pod("p"))
    denied = await world.bind("p")
    assert code(denied) == reasons.CROSS_QUOTA_EXCEEDED
    assert denied.denial is not None
    assert (denied.denial.status, denied.denial.reason) == (409, "Conflict")
    assert denied.denial.message == (
        "[CrossQuotaExceeded] cpu quota exceeded: required 2, used 3, quota 4 (node g1)"
    )


@pytest.mark.parametrize(
    ("asking", "node"),
    [
        (cpu_pod("p", 9), "cpu"),
        (cpu_pod("p", 9), "unknown"),
        (cpu_pod("p", 9).gpu(1), "g1"),
        (cpu_pod("p", 9).owned_by("DaemonSet", "d"), "g1"),
    ],
)
@pytest.mark.parametrize("leading", [True, False])
async def test_what_the_rule_is_not_about_passes_and_nobody_is_asked(
    asking: PodBuilder, node: str, *, leading: bool
) -> None:
    world = World(asking)
    if not leading:
        world.hook.stop()
    assert await world.bind("p", node) == Decision()
    assert (world.asked, world.reader.reads, world.used()) == ([], 0, (0, 0))
    assert world.counted("passed") == 1


@pytest.mark.parametrize("section", [{}, {"guardBind": True, "gpuResourceNames": []}])
async def test_unless_it_is_switched_on_every_such_bind_passes(section: dict[str, object]) -> None:
    world = World(cpu_pod("p", 9), settings=ruled(quota={"cpu": 4}, **section))
    assert await world.bind("p") == Decision()
    assert (world.counted("passed"), world.asked, world.used()) == (1, [], (0, 0))


async def test_forged_records_are_dropped_from_a_bind_that_is_granted() -> None:
    world = World(cpu_pod("p"))
    brought = {names.ASSUMED_ANNOTATION: "true", "example.com/note": "x"}
    granted = await world.hook.review(binding("p", node="g1", annotations=brought))
    assert records(granted) == {"example.com/note": "x"}


async def test_room_that_comes_back_lets_the_next_one_in() -> None:
    """A pod that is being deleted uses its node until it is gone."""
    running = cpu_pod("running", 3).bound_to("g1")
    world = World(running, cpu_pod("p"))
    for state in (running, running.terminating()):
        world.show("running", state)
        assert code(await world.bind("p")) == reasons.CROSS_QUOTA_EXCEEDED
    world.show("running", None)
    assert await world.bind("p") == Decision()


async def test_asked_again_it_answers_the_same_and_books_once() -> None:
    world = World(*two())
    assert await world.bind("p") == await world.bind("p") == Decision()
    assert world.used() == (3, 0)
    assert not (await world.bind("q")).allowed


async def test_a_pod_may_go_to_another_node_while_its_first_bind_is_under_way() -> None:
    """Either may be stored, so it counts on both, until the watch shows which."""
    world = World(*two())
    assert (await world.bind("p", "g1")).allowed
    assert (await world.bind("p", "g2")).allowed
    assert world.used() == (3, 3)
    assert not (await world.bind("q", "g1")).allowed
    assert not (await world.bind("q", "g2")).allowed
    world.show("p", cpu_pod("p", 3).bound_to("g2", phase="Pending"))
    assert world.used() == (0, 3)
    assert (await world.bind("q", "g1")).allowed


async def test_a_change_of_a_pod_whose_bind_is_under_way_leaves_it_booked() -> None:
    """The scheduler writes a condition of the pod before it binds; the watch may show that afterwards."""
    world = World(cpu_pod("p"))
    await world.bind("p")
    world.show("p", cpu_pod("p").annotation(names.CARD_NAME_ANNOTATION, ""))
    assert world.used() == (2, 0)
    world.show("p", None)
    assert world.used() == (0, 0)


async def test_a_dry_run_answers_and_books_nothing() -> None:
    world = World(*two())
    assert (await world.bind("p", dry_run=True)).allowed
    assert (await world.bind("q")).allowed
    assert not (await world.bind("p", dry_run=True)).allowed
    assert world.used() == (3, 0)


@pytest.mark.looptime
async def test_a_grant_whose_bind_was_never_stored_is_taken_back_once_it_cannot_be_any_more() -> None:
    world = World(*two())
    async with background(world.hook.run()):
        await world.bind("p", "g1")
        await world.bind("p", "g2")
        await asyncio.sleep(SETTLED_S - 1)
        assert world.used() == (3, 3)
        await asyncio.sleep(2)
    assert world.used() == (0, 0)
    assert (await world.bind("q")).allowed


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("found", "used"),
    [
        (cpu_pod("p", 3).bound_to("g2", phase="Pending"), (0, 3)),
        (cpu_pod("p", 3).bound_to("g2").terminating(), (0, 3)),
        (cpu_pod("p", 3).bound_to("g2").phase("Succeeded"), (0, 0)),
    ],
)
async def test_a_grant_that_was_stored_stays_where_it_is_although_the_watch_is_silent(
    found: PodBuilder, used: tuple[int, int]
) -> None:
    world = World(*two())
    async with background(world.hook.run()):
        await world.bind("p", "g1")
        await world.bind("p", "g2")
        world.reader.stored["ml/p"] = found.build()
        await asyncio.sleep(SETTLED_S + 1)
        assert world.used() == used
        world.show("p", found)
        assert world.used() == used
        world.show("p", None)
    assert world.used() == (0, 0)


@pytest.mark.looptime
async def test_a_grant_that_the_watch_has_shown_stays() -> None:
    world = World(cpu_pod("p"))
    await world.bind("p")
    world.show("p", cpu_pod("p").bound_to("g1", phase="Pending"))
    async with background(world.hook.run()):
        await asyncio.sleep(2 * SETTLED_S)
    assert (world.used(), world.reader.reads) == ((2, 0), 0)


async def test_what_a_leader_granted_is_forgotten_when_it_leads_no_more() -> None:
    """The next leader lists what became of it; here nobody would ever take it back."""
    world = World(cpu_pod("p"))
    await world.bind("p")
    world.hook.stop()
    assert world.used() == (0, 0)


async def test_a_standby_leaves_it_to_the_leader() -> None:
    leader, standby = World(*two()), World(*two())
    standby.leader = leader.hook
    standby.hook.stop()
    assert (await standby.bind("p")).allowed
    assert code(await standby.bind("q")) == reasons.CROSS_QUOTA_EXCEEDED
    assert (standby.asked, leader.used(), standby.used()) == (["p", "q"], (3, 0), (0, 0))


@pytest.mark.parametrize("here", [True, False])
async def test_without_a_leader_a_pod_that_only_this_rule_is_about_passes_unasked(*, here: bool) -> None:
    """Also where the one that was taken for the leader does not lead."""
    world = World(cpu_pod("p", 9), cpu_pod("share").mgpu(core=30, memory=1024))
    world.hook.stop()
    review = world.hook.review_here if here else world.hook.review
    assert await review(binding("p", node="g1")) == Decision()
    assert code(await review(binding("share", node="g1"))) == reasons.NO_LEADER
    assert world.counted("passed", reasons.NO_LEADER) == 1
    assert world.counted("denied", reasons.NO_LEADER) == 1
    assert world.used() == (0, 0)


async def test_a_pod_not_seen_yet_is_judged_by_a_read_with_the_labels_that_are_selected() -> None:
    settings = ruled(quota={"cpu": 4}, guardBind=True, labelSelector=SELECTED)
    world = World(cpu_pod("there", 3).label("tier", "batch").bound_to("g1"), settings=settings)
    world.reader.stored["ml/batch"] = cpu_pod("batch").label("tier", "batch").build()
    world.reader.stored["ml/other"] = cpu_pod("other").build()
    assert code(await world.bind("batch")) == reasons.CROSS_QUOTA_EXCEEDED
    assert await world.bind("other") == Decision()
    assert world.used() == (3, 0)


async def test_a_pod_with_shares_needs_room_in_both_respects() -> None:
    world = World(*(cpu_pod(name, 3).mgpu(core=60, memory=1024) for name in ("p", "q", "r")))
    show(world.caches.nodes, "m1", gpu_node("m1").mgpu(2, memory=16384).view())
    assert records(await world.bind("p", "m1"))[names.GPU_INDEX_PREFIX + "main"] == "0"
    assert code(await world.bind("q", "m1")) == reasons.CROSS_QUOTA_EXCEEDED
    assert [there.name for there in world.caches.ledger.pods_on("m1")] == ["p"]
    assert world.caches.guests.used("m1")["cpu"] == 3000
