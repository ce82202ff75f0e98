"""For how long nothing else is heard while a large cluster is listed, and while leading begins and ends: counted in calls.

Ten thousand calls take about five milliseconds, which is what a slice may take.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.discovery import NodeWatch
from controller.evictions import Evictions
from controller.metrics import Metrics
from controller.publishing import Publisher
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.unfinished import GangWatch
from core import names, reasons
from core.objects import Pod, kinds
from core.plan.decision import Hold
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from hack.bench import changes
from hack.bench.store import Store
from kube.events import EventRecorder
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.fakes.counted import CountedLoop, calls_of, run
from tests.unit.controller.cluster import NoWrites, caches, show
from tests.unit.controller.fakes import Recorder, Writer, term
from tests.unit.controller.repairing import bound

IN_ONE_GO = 15_000
"""Calls: a slice, a step that ends it late, and what the others do in the same round of the loop."""
TAKEN_UP = 10_000
"""Calls: what a work queue takes up in one round, beside them."""
NODES, PODS = 3_000, 4_000

Work = Coroutine[Any, Any, None]


def test_a_hundred_thousand_pods_are_listed_in_slices() -> None:
    """A twentieth of them: each page costs what it costs, however many follow."""
    store = Store()
    changes.start(store, 0.05)

    async def listed(loop: CountedLoop) -> int:
        found = Caches(store, Settings())
        await asyncio.sleep(0)
        loop.longest = 0
        async with background(found.run()):
            await found.wait_synced()
        assert (len(found.pods), len(found.nodes)) == (5_000, 250)
        return loop.longest

    assert run(listed) < IN_ONE_GO


def hostile(terms: int, expressions: int = 41) -> PodBuilder:
    rules = [
        {"key": f"example.com/{number}", "operator": "In", "values": ["yes"]} for number in range(expressions)
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": rules} for _ in range(terms)]}
    where = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return a_pod("p").gpu(1).card("A|B").in_queue("q").gated().put("spec", "affinity", value=where)


def taken_in(terms: int) -> dict[str, int]:
    """The calls that it takes to read a pod with so many terms, and to take in what was read."""
    raw = orjson.loads(orjson.dumps(hostile(terms).build()))
    cluster, ledger = caches([a_node("n").card("A", 8).view()]), Ledger(Settings())
    show(cluster.queues, "q", a_queue("q").cards({"A": 8}).view())
    views: list[Pod] = []
    return {
        "project": calls_of(lambda: views.append(kinds.POD.project(raw))),
        "Ledger.put_pod": calls_of(lambda: ledger.put_pod(views[0])),
        "Informer._put": calls_of(lambda: show(cluster.pods, views[0].key, views[0])),
        "the same again": calls_of(lambda: show(cluster.pods, views[0].key, kinds.POD.project(raw))),
    }


def test_taking_in_a_pod_costs_the_same_whatever_its_affinity() -> None:
    """A megabyte of terms is looked at when it is decided on, in steps; not when the pod is read and booked."""
    taken_in(2)
    many, one = taken_in(400), taken_in(1)
    assert many.keys() == one.keys()
    # What is kept from a pod before may spare a call or two.
    assert all(abs(calls - one[part]) < 20 for part, calls in many.items()), (many, one)


def node_watch() -> Work:
    bare = [a_node(f"n{number}").allocatable("amd.com/gpu", 8).view() for number in range(NODES)]
    return NodeWatch(caches(bare), Announcements(Recorder())).run()


def repairer() -> Work:
    cluster = caches([a_node(f"n{number}").mgpu(1, memory=100).view() for number in range(NODES)])
    metrics = Metrics(CollectorRegistry())
    return Repairer(Writer(), cluster, Recorder(), metrics, Settings()).run(term())


def queue_records() -> Work:
    running = a_pod("p").gpu(1).card("A").in_queue("q").bound_to("n").view()
    cluster = caches([a_node("n").card("A", 8).view()], many(running))
    records = QueueRecords(NoWrites(), cluster)

    async def follow() -> None:
        await records.begin(term())
        try:
            await asyncio.Event().wait()
        finally:
            records.end()

    return follow()


def announcements() -> Work:
    pods = many(a_pod("p").gpu(1).card("A").in_queue("q").gated().view())
    store: Any = Store()
    recorder = EventRecorder(store, "cardquota", "here")
    telling = Announcements(recorder, history=recorder.recall)

    async def tell() -> None:
        for number, pod in enumerate(pods):
            telling.held(Hold(pod, "q", Refusal(reasons.NO_FREE_CARD, pod.name)))
            if number % 100 == 0:
                await asyncio.sleep(0)
        await telling.run()

    return tell()


def publisher() -> Work:
    """Each pod waits in a queue of its own that is not there."""
    waiting = many(a_pod("p").gpu(1).card("A").gated().view())
    named = [replace(pod, annotations={names.QUEUE_NAME_ANNOTATION: f"no-{pod.name}"}) for pod in waiting]
    cluster = caches([a_node("n").card("A", 8).view()], named)
    metrics = Metrics(CollectorRegistry())
    return Publisher(NoWrites(), cluster, Announcements(Recorder()), metrics).run(term())


def uncounted() -> Work:
    """All run in one queue, and name a card that no node has."""
    running = a_pod("p").gpu(1).limit("rdma/hca", 1).card("K80").in_queue("q").bound_to("n").view()
    cluster = caches([a_node("n").card("A", 8).view()], many(running))
    show(cluster.queues, "q", a_queue("q").view())
    assert len(cluster.ledger.accounts["q"].uncounted_pods) == PODS
    return Publisher(NoWrites(), cluster, Announcements(Recorder()), Metrics(CollectorRegistry())).run(term())


def with_shares(card: str) -> list[Pod]:
    return many(bound("p", 100, card).bound_to("n").view())


def kept_records() -> Work:
    cluster = caches([a_node("n").mgpu(8, memory=100).view()], with_shares("0"))
    return cluster.turns.finish(cluster.keep_records())


def edited_records() -> Work:
    """The records of all pods have been edited, and nobody has mended one of them when the time of leading ends."""
    edited = with_shares("7")
    cluster = caches([a_node("n").mgpu(8, memory=100).view()], with_shares("0"))
    finish(cluster.keep_records())
    for pod in edited:
        show(cluster.pods, pod.key, pod)
    assert len(cluster.records.edited) == PODS

    async def end() -> None:
        cluster.give_back()
        await cluster.settled()
        assert [cluster.ledger.pod(pod.uid) for pod in edited[::500]] == edited[::500]

    return end()


def cut_short() -> Work:
    """A gang without PodGroup, of which one member waits and all others hold quota and have no node."""

    def member(name: str) -> PodBuilder:
        return a_pod(name).gpu(1).card("A").in_queue("q").in_gang("train", PODS + 1)

    let_in = member("p").together(PODS + 1).assigned({"A": 1}).charged("q").recorded_in_gang()
    cluster = caches([a_node("n").card("A", 8).view()], many(let_in.view()))
    last = member("last").gated().view()
    show(cluster.pods, last.key, last)
    recorder, metrics, settings = Recorder(), Metrics(CollectorRegistry()), Settings()
    watch = GangWatch(Writer(), cluster, Announcements(recorder), metrics, settings, lambda _uid: 0)
    late_s = settings.reservation.warn_after_s

    async def told_and_taken_back() -> None:
        for second in (0, late_s):
            await watch._look(second * 10**6)
        assert len(recorder.emitted) == PODS
        show(cluster.pods, last.key, replace(let_in.view(), name=last.name, uid=last.uid))
        await watch._look((late_s + 1) * 10**6)
        assert not watch.known()

    return told_and_taken_back()


def evictions() -> Work:
    """All have got a node by the time it is their turn to be deleted."""
    waiting = Evictions(Writer(), Metrics(CollectorRegistry()), lambda _uid: None, lambda _pod: None)
    for number in range(PODS):
        waiting.add(f"u{number}")
    return waiting.run(term())


def many(pod: Pod) -> list[Pod]:
    return [replace(pod, name=f"p{number}", uid=f"u{number}") for number in range(PODS)]


@pytest.mark.parametrize(
    ("loop_of", "most"),
    [
        (node_watch, IN_ONE_GO),
        (repairer, IN_ONE_GO),
        (queue_records, IN_ONE_GO),
        (announcements, IN_ONE_GO),
        (publisher, IN_ONE_GO + TAKEN_UP),
        (uncounted, IN_ONE_GO),
        (kept_records, IN_ONE_GO),
        (edited_records, IN_ONE_GO + 5 * PODS),
        (cut_short, IN_ONE_GO),
        (evictions, IN_ONE_GO),
    ],
)
def test_leading_begins_and_ends_in_slices(loop_of: Callable[[], Work], most: int) -> None:
    """Whatever there is to be looked at when it begins, and to be taken back when it ends."""
    work = loop_of()

    async def lead(loop: CountedLoop) -> tuple[int, int]:
        task = asyncio.create_task(work)
        await asyncio.sleep(1)
        begun, loop.longest = loop.longest, 0
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled() or task.exception() is None
        return begun, loop.longest

    begun, ended = run(lead)
    assert begun < most
    assert ended < most
