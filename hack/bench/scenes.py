"""What happens to a controller while it is watched: large changes, and what tenants can write to keep it busy.

Each scene fills the store before the controller starts, makes ready what is to happen, and returns what lets it happen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from hack.bench import samples
from hack.bench.store import Crowd, Store
from kube.resources import NAMESPACES, NODES, PODGROUPS, PODS, QUEUES
from tests.builders import a_group, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder, QueueBuilder

Json = dict[str, Any]

A, B, C = "NVIDIA-A", "NVIDIA-B", "NVIDIA-C"
_PLENTY: Final = 1_000_000
_CARDS: Final = 8
_LABEL, _ZONE = "example.com/rule", "topology.kubernetes.io/zone"
_EXTENDER_BYTES: Final = 16_000_000
_ALTERNATIVES: Final = 37_000
"""As many as the 256 KiB hold that a pod may have of annotations."""


class Stage(Protocol):
    """What a scene may do besides telling the store."""

    async def calm(self) -> None:
        """Returns when the controller has nothing left to do."""

    async def ask(self, path: str, *, body: Path | None = None, times: int = 1) -> None:
        """Has another process ask the controller: metrics on the one port, everything else on the other."""

    def file(self, content: bytes) -> Path:
        """A file with this content."""


Act = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scene:
    """`prepare` takes a store and the scale: 1 is the size that is judged.

    `hostile`: other queues' lifts are watched meanwhile. `starts`: the start of the controller is watched as well.
    """

    what: str
    prepare: Callable[[Store, float], Act]
    hostile: bool = False
    starts: bool = False
    standby: bool = False


def sized(number: int, scale: float, least: int = 1) -> int:
    """That many at full size."""
    return max(least, round(number * scale))


# -- large changes -----------------------------------------------------------------------------------------------


def nodes_join(store: Store, scale: float) -> Act:
    """Nodes of a card that nobody else has; its pods wait or are bound there. All join at once, and leave again."""
    nodes = [_node(f"late-{number}", A).build() for number in range(sized(45, scale, 2))]
    queues = sized(100, scale, 2)
    store.fill(QUEUES, (a_queue(f"q{number}").cards({A: 5}).build() for number in range(queues)))
    store.fill(NODES, [_node("n0", B).build()])
    bound = [
        _pod(f"bound-{number}", f"q{number % queues}", A).bound_to(f"late-{number // _CARDS}")
        for number in range(len(nodes) * _CARDS)
    ]
    waiting = [
        _pod(f"waiting-{number}", f"q{number % queues}", A).gated()
        for number in range(sized(10_000, scale, 40) - len(bound))
    ]
    store.fill(PODS, (pod.build() for pod in (*bound, *waiting)))
    joining, leaving = store.prepare(NODES, "ADDED", nodes), store.prepare(NODES, "DELETED", nodes)

    async def act(stage: Stage) -> None:
        for events in (joining, leaving):
            store.tell(events)
            await stage.calm()

    return act


def many_lifts(store: Store, scale: float) -> Act:
    """A queue without quota in which all wait gets quota for all of them."""
    count = sized(10_000, scale, 20)
    store.fill(NODES, [_node("n0", A).build()])
    store.fill(QUEUES, [a_queue("many").cards({A: 0}).build()])
    store.fill(PODS, (_pod(f"p-{number}", "many", A).gated().build() for number in range(count)))
    enough = store.prepare(QUEUES, "MODIFIED", [a_queue("many").cards({A: count}).build()])

    async def act(stage: Stage) -> None:
        store.tell(enough)
        await stage.calm()

    return act


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
    """A namespace names another queue for the pods in it, which name none."""
    store.fill(NODES, [_node("n0", A).build()])
    store.fill(QUEUES, (a_queue(name).cards({A: 5}).build() for name in ("before", "after")))
    store.fill(NAMESPACES, [a_namespace("crowded").in_queue("before").build()])
    pods = (
        a_pod(f"p-{number}", namespace="crowded").gpu(1).card(A) for number in range(sized(10_000, scale, 20))
    )
    store.fill(
        PODS,
        (pod.build() for number, pod in enumerate(_bound_or_waiting(pods, "n0")) if number >= 0),
    )
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


# -- what tenants can write ----------------------------------------------------------------------------------------


def costly_affinities(pods: int, nodes: int) -> Callable[[Store, float], Act]:
    """Pods with 400 terms of 41 expressions, of which on every node the last alone does not hold; a card comes free."""

    def prepare(store: Store, scale: float) -> Act:
        terms = sized(400, scale, 5)
        rules = [f"{_LABEL}-{number}" for number in range(40)]
        expressions = [{"key": rule, "operator": "In", "values": ["yes"]} for rule in rules]
        selector = [
            {
                "matchExpressions": [
                    *expressions,
                    {"key": _LABEL, "operator": "In", "values": [f"no-{number}"]},
                ]
            }
            for number in range(terms)
        ]
        known = sized(nodes, scale, 4)
        store.fill(
            NODES,
            (
                _labelled(_node(f"n{number}", (A, B)[number % 2]), dict.fromkeys(rules, "yes")).build()
                for number in range(known)
            ),
        )
        store.fill(QUEUES, [a_queue("hostile").cards({A: _PLENTY, B: _PLENTY}).build()])
        store.fill(PODS, [_pod("bound", "hostile", A).bound_to("n0").build()])
        where = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": selector}}
        raws = (
            _pod(f"p-{number}", "hostile", f"{A}|{B}").put("spec", "affinity", "nodeAffinity", value=where)
            for number in range(pods)
        )
        arriving = store.prepare(PODS, "ADDED", (pod.gated().build() for pod in raws))
        leaving = store.prepare(PODS, "DELETED", [_pod("bound", "hostile", A).bound_to("n0").build()])

        async def act(stage: Stage) -> None:
            store.tell(arriving)
            await stage.calm()
            store.tell(leaving)
            await stage.calm()

        return act

    return prepare


def alike_on_full_nodes(store: Store, scale: float) -> Act:
    """Pods of either card with one selector, on nodes that are full; then a card comes free, three times."""
    nodes = sized(1000, scale, 6)
    card = [A, B]
    store.fill(
        NODES,
        (
            _node(f"n{number}", card[number % 2]).label(_ZONE, f"z{number % 3}").build()
            for number in range(nodes)
        ),
    )
    store.fill(QUEUES, [a_queue(name).cards({A: _PLENTY, B: _PLENTY}).build() for name in ("full", "alike")])
    bound = [
        _pod(f"bound-{number}", "full", card[number // _CARDS % 2]).bound_to(f"n{number // _CARDS}").build()
        for number in range(nodes * _CARDS)
    ]
    store.fill(PODS, bound)
    arriving = store.prepare(
        PODS,
        "ADDED",
        (
            _pod(f"p-{number}", "alike", f"{A}|{B}").selects(_ZONE, "z1").gated().build()
            for number in range(sized(500, scale, 5))
        ),
    )
    # Node 1 and node 4 lie in that zone.
    freed = [store.prepare(PODS, "DELETED", [bound[number]]) for number in (8, 9, 32)]

    async def act(stage: Stage) -> None:
        for events in (arriving, *freed):
            store.tell(events)
            await stage.calm()

    return act


def varied_gangs(store: Store, scale: float) -> Act:
    """Gangs of 20 pods of which each asks for another amount of CPU and takes either card; there is never enough."""
    store.fill(NODES, (_node(f"n{number}", (A, B)[number % 2]).build() for number in range(20)))
    return _gangs(
        store,
        a_queue("gangs").cards({A: 9, B: 10}).capability(cpu=1000, memory="1Ti"),
        sized(30, scale, 2),
        20,
        lambda name, number: (
            _pod(name, "gangs", f"{A}|{B}").request("cpu", f"{1000 + 37 * number}m").limit("cpu", 4)
        ),
    )


def many_gangs(store: Store, scale: float) -> Act:
    """Gangs of ten alike, and quota for fifty of them."""
    count = sized(1000, scale, 4)
    store.fill(NODES, (_node(f"n{number}", A).build() for number in range(20)))
    queue = a_queue("gangs").cards({A: count // 2 + 5})
    return _gangs(store, queue, count, 10, lambda name, _: _pod(name, "gangs", A))


def gang_of_shares(store: Store, scale: float) -> Act:
    """One gang of 400 equal shares with an affinity, and room for one less."""
    members = sized(400, scale, 8)
    nodes = (members + 15) // 16
    store.fill(
        NODES,
        (
            a_node(f"n{number}").mgpu(8, memory=81920).label(_ZONE, "z1").allocatable("cpu", 128).build()
            for number in range(nodes)
        ),
    )
    store.fill(PODS, [_share("taken", "gangs").bound_to("n0").build()])
    return _gangs(
        store,
        a_queue("gangs").shares(core=_PLENTY, memory=_PLENTY),
        1,
        nodes * 16,
        lambda name, _: _share(name, "gangs").needs_node(_ZONE, "z1", "z2"),
    )


def endless_alternatives(store: Store, scale: float) -> Act:
    """Three pods that name 37,000 cards each, of which there is none; each changes twenty times."""
    count = sized(_ALTERNATIVES, scale, 20)
    expression = "|".join(f"c{number:05d}" for number in range(count))
    store.fill(NODES, (_node(f"n{number}", A).build() for number in range(20)))
    store.fill(QUEUES, [a_queue("hostile").cards({A: _PLENTY, "c00000": 5}).build()])
    pods = [_pod(f"p-{number}", "hostile", expression).gated() for number in range(3)]
    arriving = store.prepare(PODS, "ADDED", (pod.build() for pod in pods))
    rounds = [
        store.prepare(PODS, "MODIFIED", (pod.label("round", str(number)).build() for pod in pods))
        for number in range(20)
    ]

    async def act(stage: Stage) -> None:
        for events in (arriving, *rounds):
            store.tell(events)
        await stage.calm()

    return act


def _gangs(
    store: Store, queue: QueueBuilder, count: int, size: int, member: Callable[[str, int], PodBuilder]
) -> Act:
    """PodGroups that wait in a closed queue with all their members; it is opened."""
    store.fill(QUEUES, [queue.state("Closed").build()])
    store.fill(
        PODGROUPS,
        (a_group(f"g{gang}").in_queue("gangs").min_member(size).build() for gang in range(count)),
    )
    store.fill(
        PODS,
        (
            member(f"p-{gang}-{number}", number).in_group(f"g{gang}").gated().build()
            for gang in range(count)
            for number in range(size)
        ),
    )
    opened = store.prepare(QUEUES, "MODIFIED", [queue.build()])

    async def act(stage: Stage) -> None:
        store.tell(opened)
        await stage.calm()

    return act


def _node(name: str, card: str) -> NodeBuilder:
    return a_node(name).card(card, _CARDS).allocatable("cpu", 128).allocatable("memory", "1Ti")


def _pod(name: str, queue: str, card: str) -> PodBuilder:
    return a_pod(name).gpu(1).card(card).in_queue(queue)


def _share(name: str, queue: str) -> PodBuilder:
    return a_pod(name).mgpu(core=50, memory=40_000).in_queue(queue)


def _labelled(node: NodeBuilder, labels: dict[str, str]) -> NodeBuilder:
    return node.put("metadata", "labels", value={**node.raw["metadata"]["labels"], **labels})


def _bound_or_waiting(pods: Iterable[PodBuilder], node: str) -> Iterable[PodBuilder]:
    """The first eight on a node, the others waiting."""
    for number, pod in enumerate(pods):
        yield pod.bound_to(node) if number < _CARDS else pod.gated()


SCENES: Final[dict[str, Scene]] = {
    "join": Scene("45 nodes join and leave, 10,000 pods of their card", nodes_join),
    "join-standby": Scene("45 nodes join and leave, on a standby", nodes_join, standby=True),
    "affinities-60": Scene("8 affinities of 400 x 41, 60 nodes", costly_affinities(8, 60), hostile=True),
    "affinities-1000": Scene(
        "5 affinities of 400 x 41, 1,000 nodes", costly_affinities(5, 1000), hostile=True
    ),
    "alike": Scene("500 alike on 1,000 full nodes, cards come free", alike_on_full_nodes, hostile=True),
    "varied-gangs": Scene("30 gangs of 20 with choices, CPU differs", varied_gangs, hostile=True),
    "many-gangs": Scene("1,000 gangs of 10", many_gangs, hostile=True),
    "share-gang": Scene("one gang of 400 shares with an affinity", gang_of_shares, hostile=True),
    "alternatives": Scene("3 pods of 37,000 alternatives, 20 changes", endless_alternatives, hostile=True),
    "lifts": Scene("10,000 lifts in one queue", many_lifts, hostile=True),
    "metrics": Scene("/metrics, 2,000 queues x 4 cards", metrics_page),
    "start": Scene("start over 100,000 pods on 5,000 nodes", start, starts=True),
    "namespace": Scene("namespace of 10,000 pods changes its queue", namespace_queue),
    "namespace-standby": Scene("namespace of 10,000 pods, on a standby", namespace_queue, standby=True),
    "question": Scene("filter with a body of 16 MB", large_question),
}
"""By name, in the order in which they are gone through."""
