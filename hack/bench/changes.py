"""Large changes of a cluster, and large questions about it."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from hack.bench import samples
from hack.bench.stage import CARDS, A, Act, B, Json, Stage, card_node, card_pod, sized
from hack.bench.store import LATENCY_S, Crowd, Prepared, Store
from kube.client import PatchType
from kube.resources import NAMESPACES, NODES, PODS, QUEUES
from tests.builders import a_namespace, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder, QueueBuilder

_EXTENDER_BYTES: Final = 16_000_000
_WRITERS: Final = 32
"""Lifts that another leader writes at once."""


def nodes_join(store: Store, scale: float) -> Act:
    """Nodes of a card that nobody else has; its pods wait or are bound there. All join at once, and leave again."""
    nodes = [node.build() for node in _nodes_with_pods(store, scale)]
    return _in_turn(store, store.prepare(NODES, "ADDED", nodes), store.prepare(NODES, "DELETED", nodes))


def nodes_change(store: Store, scale: float) -> Act:
    """The same nodes are there; all get another label and have half of their cards and CPU at once, and then as before."""
    nodes = _nodes_with_pods(store, scale)
    before = [node.build() for node in nodes]
    store.fill(NODES, before)
    after = [node.label("pool", "other").card(A, CARDS // 2).allocatable("cpu", 64).build() for node in nodes]
    return _in_turn(store, store.prepare(NODES, "MODIFIED", after), store.prepare(NODES, "MODIFIED", before))


def _nodes_with_pods(store: Store, scale: float) -> list[NodeBuilder]:
    """Nodes of a card that nobody else has, and in the store its pods: as many bound as there are cards, the others waiting."""
    nodes = [card_node(f"late-{number}", A) for number in range(sized(45, scale, 2))]
    queues = sized(100, scale, 2)
    store.fill(QUEUES, (a_queue(f"q{number}").cards({A: 5}).build() for number in range(queues)))
    store.fill(NODES, [card_node("n0", B).build()])
    bound = [
        card_pod(f"bound-{number}", f"q{number % queues}", A).bound_to(f"late-{number // CARDS}")
        for number in range(len(nodes) * CARDS)
    ]
    waiting = [
        card_pod(f"waiting-{number}", f"q{number % queues}", A).gated()
        for number in range(sized(10_000, scale, 40) - len(bound))
    ]
    store.fill(PODS, (pod.build() for pod in (*bound, *waiting)))
    return nodes


def _in_turn(store: Store, *changes: Prepared) -> Act:
    """Each once the one before is done with."""

    async def act(stage: Stage) -> None:
        for events in changes:
            store.tell(events)
            await stage.calm()

    return act


def many_lifts(store: Store, scale: float) -> Act:
    """A queue without quota in which all wait gets quota for all of them."""
    count = sized(10_000, scale, 20)
    store.fill(NODES, [card_node("n0", A).build()])
    store.fill(QUEUES, [a_queue("many").cards({A: 0}).build()])
    store.fill(PODS, (card_pod(f"p-{number}", "many", A).gated().build() for number in range(count)))
    enough = store.prepare(QUEUES, "MODIFIED", [a_queue("many").cards({A: count}).build()])

    async def act(stage: Stage) -> None:
        store.tell(enough)
        await stage.patches(count)
        await stage.calm()

    return act


def rival_lifts(store: Store, scale: float) -> Act:
    """All who wait in a queue are lifted by another one than who is watched."""
    count = sized(10_000, scale, 20)
    quota = a_queue("many").cards({A: count})
    store.fill(NODES, [card_node("n0", A).build()])
    store.fill(QUEUES, [quota.build()])
    pods = [card_pod(f"p-{number}", "many", A).gated() for number in range(count)]
    store.fill(PODS, (pod.build() for pod in pods))
    lifts = iter(_lifts_of(quota, pods))

    async def write() -> None:
        for lift in lifts:
            await asyncio.sleep(LATENCY_S)
            store.patched(PODS, lift.pod.key, lift.patch, PatchType.JSON)

    async def act(stage: Stage) -> None:
        async with asyncio.TaskGroup() as writers:
            for _ in range(_WRITERS):
                writers.create_task(write())
        await stage.calm()

    return act


def _lifts_of(quota: QueueBuilder, pods: Iterable[PodBuilder]) -> list[Lift]:
    """What a leader decides, who has seen the pods as the store has them."""
    ledger = Ledger(Settings())
    ledger.put_node(card_node("n0", A).view())
    ledger.put_queue(quota.view())
    for pod in pods:
        ledger.put_pod(pod.put("metadata", "resourceVersion", value="1").view())
    decisions = Planner(ledger).decide(quota.view().name)
    return [decision for decision in decisions if isinstance(decision, Lift)]


def metrics_page(store: Store, scale: float) -> Act:
    """The page of /metrics, five times, while every queue uses each of four cards."""
    queues = sized(2000, scale, 4)
    quota = dict.fromkeys(samples.PRODUCTS, 10)
    store.fill(NODES, (samples.card_node(number).build() for number in range(len(samples.PRODUCTS))))
    store.fill(QUEUES, (samples.queue(number, quota).build() for number in range(queues)))
    store.fill(
        PODS,
        (
            samples.card_pod(f"p-{number}-{card}", number, card).bound_to(f"n{which}").build()
            for number in range(queues)
            for which, card in enumerate(samples.PRODUCTS)
        ),
    )

    async def act(stage: Stage) -> None:
        await stage.ask("/metrics", times=5)

    return act


def start(store: Store, scale: float) -> Act:
    """Nothing happens but the start: of ten pods seven ask for nothing, two run on a card and one waits for one."""
    count, nodes = sized(100_000, scale, 60), sized(5000, scale, 4)
    name, node, version = b"bench-name", b"bench-node", b"bench-version"

    def template(pod: PodBuilder) -> bytes:
        return orjson.dumps(pod.put("metadata", "resourceVersion", value=version.decode()).build())

    web, card = samples.web_pod(name.decode(), node.decode()), samples.training_pod(name.decode())
    kinds = [template(web)] * 7 + [template(card.bound_to(node.decode()))] * 2 + [template(card.gated())]

    def text(number: int) -> bytes:
        found = kinds[number % len(kinds)].replace(name, b"pod-%d" % number).replace(version, b"1")
        return found.replace(node, b"n%d" % (number * samples.CARDS_PER_NODE % nodes))

    quota = dict.fromkeys(samples.PRODUCTS, 10)
    store.fill(NODES, (samples.card_node(number).build() for number in range(nodes)))
    store.fill(QUEUES, (samples.queue(number, quota).build() for number in range(100)))
    store.crowd(PODS, Crowd(samples.NAMESPACE, "pod-", count, text))

    async def act(stage: Stage) -> None:
        await stage.calm()

    return act


def namespace_queue(store: Store, scale: float) -> Act:
    """A namespace names another queue for the pods in it, which name none: as many bound as there are cards, the others waiting."""
    return _moved_namespace(store, _bound_or_waiting(_crowd(sized(10_000, scale, 20)), "n0"), cards=5)


def crowded_namespace(store: Store, scale: float) -> Act:
    """The same of ten times as many, all of whom wait."""
    return _moved_namespace(store, (pod.gated() for pod in _crowd(sized(100_000, scale, 20))), cards=0)


def _crowd(count: int) -> Iterator[PodBuilder]:
    return (a_pod(f"p-{number}", namespace="crowded").gpu(1).card(A) for number in range(count))


def _moved_namespace(store: Store, pods: Iterable[PodBuilder], cards: int) -> Act:
    store.fill(NODES, [card_node("n0", A).build()])
    store.fill(QUEUES, (a_queue(name).cards({A: cards}).build() for name in ("before", "after")))
    store.fill(NAMESPACES, [a_namespace("crowded").in_queue("before").build()])
    store.fill(PODS, (pod.build() for pod in pods))
    moved = store.prepare(NAMESPACES, "MODIFIED", [a_namespace("crowded").in_queue("after").build()])

    async def act(stage: Stage) -> None:
        store.tell(moved)
        await stage.calm()

    return act


def large_question(store: Store, scale: float) -> Act:
    """kube-scheduler's filter with every node in full, twice."""
    nodes: list[Json] = []
    size = 0
    while size < _EXTENDER_BYTES * scale:
        node = samples.card_node(len(nodes)).build()
        node["status"]["images"] = [
            {"names": [f"registry.example.com/{len(nodes)}/{number}@sha256:{'0' * 64}"], "sizeBytes": 10**9}
            for number in range(50)
        ]
        nodes.append(node)
        size += len(orjson.dumps(node)) + 1
    store.fill(NODES, nodes)
    store.fill(QUEUES, [a_queue("q0").cards({A: 1}).build()])
    question = orjson.dumps({"Pod": samples.training_pod("asking").build(), "Nodes": {"items": nodes}})

    async def act(stage: Stage) -> None:
        await stage.ask("/kube/filter", body=await asyncio.to_thread(stage.file, question), times=2)

    return act


def _bound_or_waiting(pods: Iterable[PodBuilder], node: str) -> Iterable[PodBuilder]:
    """The first eight on a node, the others waiting."""
    for number, pod in enumerate(pods):
        yield pod.bound_to(node) if number < CARDS else pod.gated()
