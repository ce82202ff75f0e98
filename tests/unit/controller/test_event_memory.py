"""What the process remembers about objects for its events goes with the objects."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.decision_series import DecisionCounts
from controller.extender_votes import VoteNotes
from controller.process import _exists, _forget_what_goes
from core import reasons
from core.display.notices import QueueNotice
from core.extender.enqueue import REJECT, Vote
from core.plan.decision import Hold
from core.refusal import Refusal
from kube.client import Json
from kube.events import EventRecorder, Reference
from kube.listing import Page
from kube.metrics import Metrics
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import caches, show

pytestmark = pytest.mark.looptime

POD = a_pod("p").gpu(1).card("A").in_queue("q").in_group("g").gated()
GROUP, QUEUE, NODE = a_group("g").in_queue("q"), a_queue("q"), a_node("n")


class Store:
    """Takes every event, and has none."""

    def __init__(self) -> None:
        self.created = 0

    async def create(self, *_: Any, **__: Any) -> Json:
        self.created += 1
        return {}

    async def patch(self, *_: Any, **__: Any) -> Json:
        raise AssertionError("nothing is repeated")

    async def list(self, *_: Any, **__: Any) -> AsyncGenerator[Page]:
        yield Page([], "1")


class World:
    """The parts as the process puts them together."""

    def __init__(self) -> None:
        self.caches: Caches = caches([NODE.view()], [POD.view()])
        show(self.caches.groups, "ml/g", GROUP.view())
        show(self.caches.queues, "q", QUEUE.view())
        self.store = Store()
        self.recorder = EventRecorder(self.store, "cardquota", "host", metrics=Metrics(CollectorRegistry()))
        self.announcements = Announcements(self.recorder)
        self.notes = VoteNotes(self.recorder)
        _forget_what_goes(self.caches, self.recorder, self.announcements, self.notes, DecisionCounts())

    def speaks(self) -> None:
        """Says something about everything there is."""
        pod, group = POD.view(), GROUP.view()
        self.announcements.held(Hold(pod, "q", Refusal(reasons.GANG_INCOMPLETE, "text"), group=group))
        self.notes.told(Vote(REJECT, group, Refusal(reasons.QUEUE_NOT_FOUND, "text")))
        self.announcements.about_queue(QUEUE.view(), [QueueNotice(reasons.QUOTA_EXCEEDED, "text", "1")])
        node = Reference.of(NODES, "n", uid=NODE.view().uid)
        self.recorder.emit(node, "Warning", reasons.MGPU_RECORD_IRREGULAR, "text", "Repair")

    def remembered(self) -> tuple[int, int, int, int]:
        return (
            len(self.announcements._sayings),
            len(self.announcements._groups),
            len(self.notes._sayings),
            len(self.recorder._objects),
        )

    def everything_goes(self) -> None:
        show(self.caches.pods, "ml/p", None)
        show(self.caches.groups, "ml/g", None)
        show(self.caches.queues, "q", None)
        show(self.caches.nodes, "n", None)


@pytest.mark.parametrize("after_s", [0.0, 10.0])
async def test_nothing_is_remembered_about_what_is_gone(after_s: float) -> None:
    """Whether it was said by then or not; and what was not is not said any more, save what somebody found on a node."""
    world = World()
    async with (
        background(world.recorder.run()),
        background(world.announcements.run()),
        background(world.notes.run()),
    ):
        world.speaks()
        await asyncio.sleep(after_s)
        assert world.remembered()[:3] == (3, 1, 1)
        world.everything_goes()
        await asyncio.sleep(100)
    assert world.remembered() == (0, 0, 0, 0)
    assert world.store.created == (5 if after_s else 1)


async def test_a_pod_that_is_made_anew_under_its_name_is_another_one() -> None:
    world = World()
    world.speaks()
    show(world.caches.pods, "ml/p", POD.uid("another").view())
    show(world.caches.groups, "ml/g", a_group("g").in_queue("q").uid("another").view())
    show(world.caches.queues, "q", a_queue("q").uid("another").view())
    assert world.remembered()[:3] == (0, 0, 0)


async def test_only_the_very_object_exists() -> None:
    world = World()
    pod, group, queue = POD.view(), GROUP.view(), QUEUE.view()
    there = [
        Reference.of(PODS, "p", "ml", pod.uid),
        Reference.of(PODGROUPS, "g", "ml", group.uid),
        Reference.of(QUEUES, "q", uid=queue.uid),
        Reference.of(NODES, "n", uid=NODE.view().uid),
    ]
    gone = [
        Reference.of(PODS, "p", "ml", "another"),
        Reference.of(PODS, "x", "ml", pod.uid),
        Reference.of(PODGROUPS, "p", "ml", pod.uid),
        Reference.of(NODES, "n", uid="another"),
    ]
    assert [_exists(world.caches, each) for each in (*there, *gone)] == [True] * 4 + [False] * 4
