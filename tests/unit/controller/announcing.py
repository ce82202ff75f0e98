"""A ledger, a planner and what is announced of their decisions, for tests of events."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from controller.announcements import Announcements
from core import reasons
from core.objects import Group, Job, Node, Pod, Queue
from core.plan.decision import Hold
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.queues.rollouts import Rollouts
from core.settings import Settings
from kube.event_store import Words
from kube.events import Past, Reference
from kube.resources import PODGROUPS, PODS, QUEUES
from tests.builders import a_group, a_job, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, JobBuilder, NodeBuilder, PodBuilder, QueueBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.fakes import Recorder

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


# -- what leaders before have said ---------------------------------------------------------------------------------


class Records:
    """What the API server has of earlier leaders; `slow_s` until it tells of it, and `rest_s` until that was all."""

    def __init__(self, *past: Past, slow_s: float = 0.0, rest_s: float = 0.0) -> None:
        self.past = past
        self.slow_s = slow_s
        self.rest_s = rest_s
        self.reads = 0

    def recall(self, take: Callable[[Past], None]) -> Awaitable[None]:
        self.reads += 1
        return self._recall(take)

    async def _recall(self, take: Callable[[Past], None]) -> None:
        await asyncio.sleep(self.slow_s)
        for past in self.past:
            take(past)
        await asyncio.sleep(self.rest_s)


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
