"""What people read in events: the exact words on pods and PodGroups, on change only, and nothing about closed queues."""

from collections.abc import Sequence

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
from kube.events import Reference
from tests.builders import a_group, a_job, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, JobBuilder, NodeBuilder, PodBuilder, QueueBuilder
from tests.unit.controller.fakes import Recorder

Thing = NodeBuilder | QueueBuilder | GroupBuilder | JobBuilder | PodBuilder

H200, H800 = "NVIDIA-H200", "NVIDIA-H800"
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

    def decides(self) -> list[tuple[str, str, str]]:
        """One pass; the events that it added."""
        before = len(self.recorder.emitted)
        for name in list(self.ledger.accounts):
            for decision in self.planner.decide(name):
                if isinstance(decision, Hold):
                    self.announcements.held(decision)
                else:
                    self.announcements.lifted(decision)
        return self.recorder.emitted[before:]


@pytest.mark.parametrize(
    ("things", "reason", "message"),
    [
        (
            (QUEUE, POD.card("X")),
            "GetTaskRequestResourceFailed",
            "Get request resource failed, Queue <q>, error: no resource name found for card <X>",
        ),
        (
            (QUEUE, a_pod("p").card(H200).in_queue("q").gated()),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: "
                "no resource <nvidia.com/gpu> defined in requests/limits for card <NVIDIA-H200>"
            ),
        ),
        (
            (a_queue("q"), POD),
            "EmptyQueueCapability",
            (
                "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to allocate: "
                "requested <2000> of <NVIDIA-H200>"
            ),
        ),
        (
            (QUEUE.cards({H200: 8}).capability(cpu=4), POD.request("cpu", "4500m")),
            "InsufficientCPUQuota",
            "Queue <q> has insufficient CPU quota: requested <4500>, total would be <4500>, but capability is <4000>",
        ),
        (
            (QUEUE.cards({H200: 8}).capability(memory="1536Mi"), POD.request("memory", "2Gi")),
            "InsufficientMemoryQuota",
            (
                "Queue <q> has insufficient memory quota: requested <2048 Mi>, total would be <2048 Mi>, "
                "but capability is <1536 Mi>"
            ),
        ),
        (
            (QUEUE, BOUND, POD),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <3000>, "
                "but capability is <1000>"
            ),
        ),
        (
            (QUEUE.capability(cpu=4).cards(""), POD),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <2000>, "
                "but capability is <0>"
            ),
        ),
        (
            (QUEUE, POD.card(f"{H200}|{H800}")),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200|NVIDIA-H800> quota: requested <2000>, total would be <2000>, "
                "but capability is <0>"
            ),
        ),
    ],
    ids=[
        "unknown card",
        "no resource",
        "no capability",
        "cpu",
        "memory",
        "card",
        "capability without the card",
        "the last alternative",
    ],
)
def test_the_words_on_a_pod(things: Sequence[Thing], reason: str, message: str) -> None:
    assert World(NODE, OTHER, *things).decides() == [("Pod p", reason, message)]


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
                "requested <5000> of <NVIDIA-H200>"
            ),
        ),
        (
            (QUEUE.capability(cpu=4), GROUP.cards({H200: 1}).min_resources(cpu=5)),
            "InsufficientCPUQuota",
            "Queue <q> has insufficient CPU quota: requested <5000>, total would be <5000>, but capability is <4000>",
        ),
        (
            (QUEUE.capability(memory="1Gi"), GROUP.cards({H200: 1}).min_resources(memory="1536Mi")),
            "InsufficientMemoryQuota",
            (
                "Queue <q> has insufficient memory quota: requested <1536 Mi>, total would be <1536 Mi>, "
                "but capability is <1024 Mi>"
            ),
        ),
        (
            (QUEUE.cards({H200: 3}), GROUP.cards({H200: 5})),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <5000>, total would be <5000>, "
                "but capability is <3000>"
            ),
        ),
        (
            (QUEUE.cards({H200: 3, H800: 3}), GROUP.cards({f"{H200}|{H800}": 8})),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200|NVIDIA-H800> quota: requested <8000>, total would be <8000>, "
                "but capability is <6000>"
            ),
        ),
    ],
    ids=["unreadable", "no capability", "cpu", "memory", "card", "the sums of a choice"],
)
def test_the_words_on_a_podgroup_whose_job_declares_too_much(
    things: Sequence[Thing], reason: str, message: str
) -> None:
    """On the PodGroup and on each of its pods, never on the Volcano Job."""
    second = MEMBER.put("metadata", "name", value="p2").uid("p2")
    said = World(NODE, OTHER, JOB, *things, MEMBER, second).decides()
    assert [event[:2] for event in said] == [("PodGroup g", reason), ("Pod p", reason), ("Pod p2", reason)]
    assert all(text.startswith(message) for *_, text in said)
    assert message.endswith(": ") or all(text == message for *_, text in said)


def test_a_gang_that_does_not_fit_is_told_what_is_short_and_how_many_it_needs() -> None:
    gang = a_group("g").in_queue("q").min_member(2)
    members = [POD.in_group("g").uid(f"u{n}").put("metadata", "name", value=f"p{n}") for n in range(2)]
    said = World(NODE, QUEUE.cards({H200: 3}), gang, *members).decides()
    text = (
        "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <4000>, but capability is "
        "<3000>; PodGroup ml/g needs 2 more members at once, 1 fit"
    )
    assert said == [(name, "InsufficientScalarQuota", text) for name in ("PodGroup g", "Pod p0", "Pod p1")]


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
@pytest.mark.parametrize("group", [None, GROUP.cards({H200: 9}), a_group("g").in_queue("q").min_member(3)])
def test_a_queue_that_is_not_open_is_silent(state: str, group: GroupBuilder | None) -> None:
    things = (POD,) if group is None else (JOB, group, MEMBER)
    world = World(NODE, QUEUE.state(state), *things)
    assert world.decides() == []
    (decision,) = world.planner.decide("q")
    assert isinstance(decision, Hold)


def test_the_same_words_are_said_once_and_new_ones_again() -> None:
    world = World(NODE, QUEUE, POD)
    assert len(world.decides()) == 1
    assert world.decides() == []
    world.shows(QUEUE.cards({H200: 0}))
    assert len(world.decides()) == 1


def test_a_pod_that_was_lifted_or_is_gone_is_forgotten() -> None:
    world = World(NODE, QUEUE, POD)
    world.decides()
    world.announcements.gone("uid-ml-p")
    assert len(world.decides()) == 1
    (decision,) = world.planner.decide("q")
    world.announcements.lifted(Lift(decision.pod, "q", {}, "", NodeRequirement(), decision.pod))
    assert len(world.decides()) == 1


def test_a_rollout_that_waits_for_its_own_pods_is_told_beside_the_reason() -> None:
    old = BOUND.of_deployment("web", "aaa")
    new = POD.gpu(1).of_deployment("web", "bbb")
    world = World(NODE, QUEUE, old, new)
    said = world.decides()
    assert [event[:2] for event in said] == [
        ("Pod p", reasons.INSUFFICIENT_SCALAR_QUOTA),
        ("Pod p", reasons.ROLLOUT_NEEDS_QUOTA),
    ]
    assert world.decides() == []


class Deaf(Recorder):
    """Takes nothing, as a full recorder does."""

    full = True

    def emit(self, regarding: Reference, event_type: str, reason: str, note: str, action: str) -> bool:
        return not self.full and super().emit(regarding, event_type, reason, note, action)


def test_what_could_not_be_taken_is_said_the_next_time() -> None:
    world, recorder = World(NODE, QUEUE, POD), Deaf()
    world.announcements = Announcements(recorder, world.rollouts)
    world.decides()
    recorder.full = False
    world.decides()
    assert [event[0] for event in recorder.emitted] == ["Pod p"]


def test_a_queue_is_told_what_is_news_and_again_after_it_was_right() -> None:
    recorder, queue = Recorder(), QUEUE.view()
    announcements = Announcements(recorder)
    for notices in (
        [Notice("R", "first", "1")],
        [Notice("R", "same news in other words", "1")],
        [Notice("R", "second", "2"), Notice("S", "beside", "1")],
        [],
        [Notice("R", "third", "2")],
    ):
        announcements.about_queue(queue, notices)
    assert [note for *_, note in recorder.emitted] == ["first", "second", "beside", "third"]
    announcements.gone(queue.uid)
    announcements.about_queue(queue, [Notice("R", "of another queue under the name", "2")])
    assert len(recorder.emitted) == 5
