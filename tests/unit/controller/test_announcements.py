"""What people read in events: the exact words on pods and PodGroups, on change only, and nothing about closed queues."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from controller.announcements import Announcements
from core import reasons
from core.affinity import NodeRequirement
from core.objects import Group, Job, Node, Pod, Queue
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.queues.notices import Notice
from core.queues.rollouts import Rollouts
from core.settings import Settings
from kube.event_store import Words
from kube.events import Past, Reference
from kube.resources import PODGROUPS, PODS, QUEUES
from tests.builders import a_group, a_job, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, JobBuilder, NodeBuilder, PodBuilder, QueueBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.fakes import Recorder

pytestmark = pytest.mark.looptime

Thing = NodeBuilder | QueueBuilder | GroupBuilder | JobBuilder | PodBuilder

H200, H800 = "NVIDIA-H200", "NVIDIA-H800"
OVER, MALFORMED = reasons.QUOTA_EXCEEDED, reasons.CARD_QUOTA_MALFORMED
NODE = a_node("n").card(H200, 8).allocatable("cpu", 64).allocatable("memory", "512Gi")
OTHER = a_node("o").card(H800, 8)
POD = a_pod("p").gpu(2).card(H200).in_queue("q").gated()
QUEUE = a_queue("q").cards({H200: 1})
JOB = a_job("j").in_queue("q")
GROUP = a_group("g").in_queue("q").owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
MEMBER = POD.in_group("g").owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
BOUND = a_pod("b").gpu(1).card(H200).in_queue("q").bound_to("n")


class World:
    def __init__(self, *things: Thing) -> None:
        self.ledger = Ledger(Settings())
        self.rollouts = Rollouts(self.ledger)
        self.recorder = Recorder()
        self.announcements = Announcements(self.recorder, self.rollouts)
        self.planner = Planner(self.ledger)
        self.shows(*things)

    def shows(self, *things: Thing) -> None:
        for thing in things:
            match thing.view():
                case Node() as node:
                    self.ledger.put_node(node)
                case Queue() as queue:
                    self.ledger.put_queue(queue)
                case Group() as group:
                    self.ledger.put_group(group)
                case Job() as job:
                    self.ledger.put_job(job)
                case Pod() as pod:
                    self.ledger.put_pod(pod)
                    self.rollouts.put_pod(pod)

    def passes(self) -> None:
        """One pass."""
        for name in list(self.ledger.accounts):
            for decision in self.planner.decide(name):
                if isinstance(decision, Hold):
                    self.announcements.held(decision)
                else:
                    self.announcements.lifted(decision)

    async def decides(self, after_s: float = 5.0) -> list[tuple[str, str, str]]:
        """One pass; the events that were added by some time later."""
        before = len(self.recorder.emitted)
        async with background(self.announcements.run()):
            self.passes()
            await asyncio.sleep(after_s)
        return self.recorder.emitted[before:]


@pytest.mark.parametrize(
    ("things", "reason", "message"),
    [
        (
            (QUEUE, POD.card("X")),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: no resource name found for card <X>. "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        ),
        (
            (NODE, OTHER, QUEUE, POD.card("NVIDIA-H20O|X")),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: no resource name found for card <NVIDIA-H20O>; "
                "did you mean <NVIDIA-H200>? "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        ),
        (
            (QUEUE, a_pod("p").card(H200).in_queue("q").gated()),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: "
                "no resource <nvidia.com/gpu> defined in requests/limits for card <NVIDIA-H200>. "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        ),
        (
            (a_queue("q"), POD),
            "EmptyQueueCapability",
            (
                "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to allocate: "
                "requested <2000> of <NVIDIA-H200>. "
                "The queue has no card quota: set volcano.sh/card.quota on it."
            ),
        ),
        (
            (QUEUE.cards({H200: 8}).capability(cpu=4), POD.request("cpu", "4500m")),
            "InsufficientCPUQuota",
            (
                "Queue <q> has insufficient CPU quota: requested <4500>, total would be <4500>, but capability is <4000>. "
                "In cores: asks for 4.5, more than the whole capability (4); "
                "ask for less, or raise spec.capability.cpu."
            ),
        ),
        (
            (QUEUE.cards({H200: 8}).capability(memory="1536Mi"), POD.request("memory", "2Gi")),
            "InsufficientMemoryQuota",
            (
                "Queue <q> has insufficient memory quota: requested <2048 Mi>, total would be <2048 Mi>, "
                "but capability is <1536 Mi>. "
                "In Gi: asks for 2, more than the whole capability (1.5); "
                "ask for less, or raise spec.capability.memory."
            ),
        ),
        (
            (QUEUE, BOUND, POD),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <3000>, "
                "but capability is <1000>. "
                "In cards: asks for 2, more than the whole quota (1); ask for fewer, or raise the quota."
            ),
        ),
        (
            (QUEUE.capability(cpu=4).cards(""), POD),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <2000>, "
                "but capability is <0>. "
                "In cards: asks for 2, more than the whole quota (0); raise the quota."
            ),
        ),
        (
            (QUEUE, POD.card(f"{H200}|{H800}")),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200|NVIDIA-H800> quota: requested <2000>, total would be <2000>, "
                "but capability is <0>. "
                "In cards: asks for 2, more than the whole quota (1 <NVIDIA-H200>, 0 <NVIDIA-H800>); ask for fewer, or raise the quota."
            ),
        ),
    ],
    ids=[
        "unknown card",
        "misspelt card",
        "no resource",
        "no capability",
        "cpu",
        "memory",
        "card",
        "capability without the card",
        "the last alternative",
    ],
)
async def test_the_words_on_a_pod(things: Sequence[Thing], reason: str, message: str) -> None:
    assert await World(NODE, OTHER, *things).decides() == [("Pod p", reason, message)]


@pytest.mark.parametrize(
    ("things", "reason", "message"),
    [
        (
            (QUEUE, GROUP.cards("[")),
            "GetTaskRequestResourceFailed",
            "Get request resource failed, Queue <q>, error: volcano.sh/card.request: ",
        ),
        (
            (a_queue("q"), GROUP.cards({H200: 5})),
            "EmptyQueueCapability",
            (
                "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to enqueue: "
                "requested <5000> of <NVIDIA-H200>. "
                "The queue has no card quota: set volcano.sh/card.quota on it."
            ),
        ),
        (
            (QUEUE.capability(cpu=4), GROUP.cards({H200: 1}).min_resources(cpu=5)),
            "InsufficientCPUQuota",
            (
                "Queue <q> has insufficient CPU quota: requested <5000>, total would be <5000>, but capability is <4000>. "
                "In cores: asks for 5, more than the whole capability (4); "
                "ask for less, or raise spec.capability.cpu."
            ),
        ),
        (
            (QUEUE.capability(memory="1Gi"), GROUP.cards({H200: 1}).min_resources(memory="1536Mi")),
            "InsufficientMemoryQuota",
            (
                "Queue <q> has insufficient memory quota: requested <1536 Mi>, total would be <1536 Mi>, "
                "but capability is <1024 Mi>. "
                "In Gi: asks for 1.5, more than the whole capability (1); "
                "ask for less, or raise spec.capability.memory."
            ),
        ),
        (
            (QUEUE.cards({H200: 3}), GROUP.cards({H200: 5})),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <5000>, total would be <5000>, "
                "but capability is <3000>. "
                "In cards: asks for 5, more than the whole quota (3); ask for fewer, or raise the quota."
            ),
        ),
        (
            (QUEUE.cards({H200: 3, H800: 3}), GROUP.cards({f"{H200}|{H800}": 8})),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200|NVIDIA-H800> quota: requested <8000>, total would be <8000>, "
                "but capability is <6000>. "
                "In cards: asks for 8, more than the whole quota (6); ask for fewer, or raise the quota."
            ),
        ),
    ],
    ids=["unreadable", "no capability", "cpu", "memory", "card", "the sums of a choice"],
)
async def test_the_words_on_a_podgroup_whose_job_declares_too_much(
    things: Sequence[Thing], reason: str, message: str
) -> None:
    """On the PodGroup and on each of its pods, never on the Volcano Job."""
    second = MEMBER.put("metadata", "name", value="p2").uid("p2")
    said = await World(NODE, OTHER, JOB, *things, MEMBER, second).decides()
    assert [event[:2] for event in said] == [("PodGroup g", reason), ("Pod p", reason), ("Pod p2", reason)]
    assert all(text.startswith(message) for *_, text in said)
    assert message.endswith(": ") or all(text == message for *_, text in said)


async def test_a_gang_that_does_not_fit_is_told_what_is_short_and_how_many_it_needs() -> None:
    gang = a_group("g").in_queue("q").min_member(2)
    members = [POD.in_group("g").uid(f"u{n}").put("metadata", "name", value=f"p{n}") for n in range(2)]
    said = await World(NODE, QUEUE.cards({H200: 3}), gang, *members).decides()
    text = (
        "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <4000>, but capability is "
        "<3000>. In cards: asks for 2, 2 of 3 are in use; wait for cards to come back, or raise the quota; PodGroup ml/g needs 2 more members at once, 1 fit"
    )
    assert said == [(name, "InsufficientScalarQuota", text) for name in ("PodGroup g", "Pod p0", "Pod p1")]


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
        [Notice(OVER, "first!", "1")],
        [Notice(OVER, "same news in other words", "1")],
        [Notice(OVER, "second", "2"), Notice(MALFORMED, "beside", "1")],
        [],
        [Notice(OVER, "third", "2")],
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
    announcements.about_queue(queue, [Notice(OVER, "of another queue under the name", "2")])
    assert len(recorder.emitted) == 5


# -- what leaders before have said ---------------------------------------------------------------------------------


class Records:
    """What the API server has of earlier leaders; `slow_s` until it has told all of it."""

    def __init__(self, *past: Past, slow_s: float = 0.0) -> None:
        self.past = past
        self.slow_s = slow_s
        self.reads = 0

    def recall(self, take: Callable[[Past], None]) -> Awaitable[None]:
        self.reads += 1
        return self._recall(take)

    async def _recall(self, take: Callable[[Past], None]) -> None:
        await asyncio.sleep(self.slow_s)
        for past in self.past:
            take(past)


def stored(event: tuple[str, str, str], action: str = "Lift", age_s: float = 60.0) -> Past:
    """An emitted event as the next leader finds it."""
    about, reason, note = event
    kind, _, name = about.partition(" ")
    resource = {"Pod": PODS, "PodGroup": PODGROUPS, "Queue": QUEUES}[kind]
    uid = {"Pod": f"uid-ml-{name}", "PodGroup": f"uid-ml-{name}", "Queue": f"uid-{name}"}[kind]
    regarding = Reference.of(resource, name, "" if kind == "Queue" else "ml", uid)
    return Past(
        "e",
        regarding,
        Words("Warning", reason, note, action),
        1,
        datetime.now(UTC) - timedelta(seconds=age_s),
    )


def next_leader(world: World, records: Records, exists: Callable[[Reference], bool] = lambda _: True) -> None:
    world.recorder = Recorder()
    world.announcements = Announcements(world.recorder, world.rollouts, records.recall, exists)


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
    less = Notice(reasons.QUOTA_EXCEEDED, text.replace("4000", "3000"), "A=1000")
    cut = Notice(reasons.QUOTA_EXCEEDED, text.replace("<1000>", "<0>"), "A=0")
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


async def test_nothing_is_said_by_a_replica_that_does_not_lead() -> None:
    world = World(NODE, QUEUE, POD)
    next_leader(world, Records())
    world.passes()
    world.announcements.about_queue(QUEUE.view(), [Notice(OVER, "text", "1")])
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
