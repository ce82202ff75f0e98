"""Whatever has come and gone leaves nothing behind, on the leader and on a standby."""

import asyncio
import os
from collections import Counter
from itertools import count
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.auditing import Auditor
from controller.binding import BindingHook
from controller.discovery import NodeWatch
from controller.leading import Leader
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.nominations import Nominations
from controller.overruns import OverrunWatch
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from core.plan import admitted, placement, stock
from core.queues import journal, occupants
from core.queues.rollouts import Rollouts
from core.settings import Settings
from core.usage import courses
from tests.builders import a_group, a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import PodBuilder
from tests.unit.controller.cluster import NoUsage, NoWrites, Pods, caches, show
from tests.unit.controller.fakes import Recorder, Writer, term
from tests.unit.controller.leftovers import census
from tests.unit.controller.test_binding import binding

pytestmark = pytest.mark.looptime

SIZE = int(os.environ.get("CARDQUOTA_LEFTOVERS", "60"))
"""Objects of each kind in one generation."""
SETTINGS = Settings.model_validate(
    {
        "dra": {"queueCRD": "leave"},
        "cards": {"podsWithoutCardName": "infer", "unlimitedCpuMemory": True},
        "crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], "quota": {"cpu": 4}, "guardBind": True},
        "reservation": {"evictAfter": "1h"},
    }
)


class Replica:
    """Everything in the controller that remembers something."""

    def __init__(self) -> None:
        self.caches = caches(settings=SETTINGS)
        self.pods = Pods()
        self.writer, metrics, recorder = Writer(), Metrics(CollectorRegistry()), Recorder()
        announcements = Announcements(recorder, Rollouts(self.caches.ledger))
        parts = (self.writer, self.caches, announcements, metrics)
        self.hook = BindingHook(self.pods, self.caches, SETTINGS, metrics)
        reservations = ReservationWatch(self.writer, *parts[1:], SETTINGS, lambda: 0)
        self.series = QueueSeries(self.caches.ledger, reservations.late)
        self.overruns = OverrunWatch(self.caches, announcements, lambda: 0)
        self.leader = Leader(
            self.caches,
            Lifter(*parts),
            Nominations(self.writer, self.caches),
            Publisher(*parts),
            Repairer(self.writer, self.caches, recorder, metrics, SETTINGS),
            reservations,
            StrandedPods(self.caches, announcements),
            QueueDefinitionKeeper(NoWrites(), self.caches, recorder, metrics, SETTINGS),
            QueueRecords(self.writer, self.caches),
            self.hook,
            self.series,
            Auditor(self.caches, metrics),
            NodeWatch(self.caches, announcements),
            UsageKeeper(
                NoUsage(),
                self.caches,
                UsageFollower(self.caches, count(step=60_000_000).__next__),
                metrics,
                "ns",
            ),
        )
        self.announcements = announcements
        self.caches.pods.subscribe(announcements.pod_changed)
        self.caches.queues.subscribe(metrics.by_queue.queue_changed)

    def kept(self) -> Counter[str]:
        return census(self.caches, self.leader, self.hook, self.overruns, self.series, self.announcements)

    def show(self, pod: PodBuilder) -> None:
        view = pod.view()
        self.pods.stored[view.key] = pod.build()
        show(self.caches.pods, view.key, view)

    def hide(self, pod: PodBuilder) -> None:
        view = pod.view()
        self.pods.stored.pop(view.key, None)
        show(self.caches.pods, view.key, None)


def a_generation(name: str, number: int) -> tuple[list[tuple[str, str, Any]], list[PodBuilder]]:
    """What belongs together: (informer, key, view) of everything but pods, and pods of every kind."""
    own = f"{name}-{number}"
    node = a_node(own).card(f"CARD-{own}", 8).mgpu(2, memory=8192).allocatable("cpu", 64)
    group = a_group(own).in_queue(own).min_member(1)
    things = [
        ("namespaces", own, a_namespace(own).view()),
        ("queues", own, a_queue(own).cards({f"CARD-{own}": 1}).shares(core=1000).view()),
        ("nodes", own, node.view()),
        ("groups", f"ml/{own}", group.uid(f"uid-{own}").view()),
        ("claims", f"ml/{own}", a_claim(own).exactly("r", own).view()),
        ("templates", f"ml/{own}", a_template(own).exactly("r", own).view()),
    ]
    card = f"CARD-{own}"
    pods = [
        a_pod(f"{own}-card").gpu(1).card(card).in_queue(own).gated(),
        a_pod(f"{own}-waits").gpu(8).card(card).in_queue(own).gated(),
        a_pod(f"{own}-choice").gpu(1).card(f"{card}|OTHER").in_queue(own).gated(),
        a_pod(f"{own}-unnamed").gpu(1).in_queue(own).gated(),
        a_pod(f"{own}-member").gpu(1).card(card).in_group(own).gated(),
        a_pod(f"{own}-share").mgpu("c", core=30, memory=256).in_queue(own).gated(),
        a_pod(f"{own}-claim").claim("dev", name=own).in_queue(own).gated(),
        a_pod(f"{own}-each").claim("dev", template=own).in_queue(own).gated(),
        a_pod(f"{own}-cpu").request("cpu", 1).in_queue(own),
        a_pod(f"{own}-other", namespace=own).gpu(1).card(card).gated(),
    ]
    return things, pods


async def move_on(replica: Replica, pod: PodBuilder, node: str) -> None:
    """The API server shows the lift of a pod, its scheduler binds it, or tries to."""
    view = pod.view()
    booked = replica.caches.ledger.assumed(view.uid)
    if booked is not None:
        pod = pod.put("spec", "schedulingGates", value=[])
        for key, text in booked.annotations.items():
            pod = pod.annotation(key, text)
        replica.show(pod)
    await replica.hook.review(binding(view.name, node=node, uid=view.uid))
    if booked is not None:
        replica.show(pod.bound_to(node))


async def live(replica: Replica, name: str) -> None:
    """A generation comes, is lifted, bound and deleted as far as it gets, and goes with all that it needed."""
    generations = [a_generation(name, number) for number in range(SIZE)]
    for things, pods in generations:
        for informer, key, view in things:
            show(getattr(replica.caches, informer), key, view)
        for pod in pods:
            replica.show(pod)
    await asyncio.sleep(30)
    for number, (_, pods) in enumerate(generations):
        for pod in pods:
            await move_on(replica, pod, f"{name}-{number}")
    await asyncio.sleep(120)
    for things, pods in generations:
        for pod in pods:
            replica.show(pod.terminating())
            replica.hide(pod)
        for informer, key, _ in reversed(things):
            show(getattr(replica.caches, informer), key, None)
    await asyncio.sleep(1000)


@pytest.fixture
def small_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered up to some size reaches that with the first generation."""
    for module in (admitted, placement, stock, journal):
        monkeypatch.setattr(module, "_KEPT", 10)
    monkeypatch.setattr(occupants, "_GONE_KEPT", 10)
    monkeypatch.setattr(courses, "_CHARGES_MOST", 10)


@pytest.mark.usefixtures("small_memories")
@pytest.mark.parametrize("leads", [True, False], ids=["leader", "standby"])
async def test_nothing_that_was_kept_about_them_outlives_them(*, leads: bool) -> None:
    replica = Replica()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(replica.leader.lead(term())) if leads else None
        await live(replica, "first")
        first = replica.kept()
        await live(replica, "second")
        second = replica.kept()
        if running is not None:
            running.cancel()
    # A memory that is full has some more or fewer in it; what is never forgotten grows by at least one for each of them.
    grown = {where: (first[where], size) for where, size in second.items() if size > first[where] + SIZE // 2}
    assert grown == {}
