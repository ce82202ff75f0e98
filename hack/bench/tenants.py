"""What tenants can write to keep a controller busy."""

import asyncio
from collections.abc import Callable
from typing import Final

import orjson

from hack.bench.stage import CARDS, PLENTY, A, Act, B, Json, Stage, card_node, card_pod, sized
from hack.bench.store import Crowd, Store
from kube.resources import NODES, PODGROUPS, PODS, QUEUES, RESOURCE_CLAIM_TEMPLATES
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import NodeBuilder, PodBuilder, QueueBuilder

_LABEL, _ZONE = "example.com/rule", "topology.kubernetes.io/zone"
_RULES: Final = tuple(f"{_LABEL}-{number}" for number in range(40))
_ALTERNATIVES: Final = 37_000
"""As many as the 256 KiB hold that a pod may have of annotations."""
_BETWEEN_S: Final = 0.05


def costly_affinities(pods: int, nodes: int) -> Callable[[Store, float], Act]:
    """Pods with 400 terms of 41 expressions, all of them different, of which on every node the last of a term alone does not hold.

    The nodes differ in every label. A card comes free.
    """

    def prepare(store: Store, scale: float) -> Act:
        terms, known = sized(400, scale, 5), sized(nodes, scale, 4)
        store.fill(
            NODES,
            (
                _labelled(card_node(f"n{n}", (A, B)[n % 2]), dict.fromkeys((_LABEL, *_RULES), f"{n}")).build()
                for n in range(known)
            ),
        )
        store.fill(QUEUES, [a_queue("hostile").cards({A: PLENTY, B: PLENTY}).build()])
        bound = card_pod("bound", "hostile", A).bound_to("n0").build()
        store.fill(PODS, [bound])
        arriving = store.prepare(PODS, "ADDED", (_costly(number, terms) for number in range(pods)))
        leaving = store.prepare(PODS, "DELETED", [bound])

        async def act(stage: Stage) -> None:
            store.tell(arriving)
            await stage.calm()
            store.tell(leaving)
            await stage.calm()

        return act

    return prepare


def _costly(number: int, terms: int) -> Json:
    """A pod whose affinity no other has."""

    def term(of: str) -> Json:
        holding = [{"key": rule, "operator": "NotIn", "values": [of]} for rule in _RULES]
        return {"matchExpressions": [*holding, {"key": _LABEL, "operator": "Lt", "values": [of]}]}

    selector = {"nodeSelectorTerms": [term(f"-{1 + number * terms + n}") for n in range(terms)]}
    where = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    pod = card_pod(f"p-{number}", "hostile", f"{A}|{B}")
    return pod.put("spec", "affinity", "nodeAffinity", value=where).gated().build()


def alike_on_full_nodes(store: Store, scale: float) -> Act:
    """Pods of either card with one selector, on nodes that are full; then a card comes free, three times."""
    nodes = sized(1000, scale, 6)
    card = [A, B]
    store.fill(
        NODES,
        (
            card_node(f"n{number}", card[number % 2]).label(_ZONE, f"z{number % 3}").build()
            for number in range(nodes)
        ),
    )
    store.fill(QUEUES, [a_queue(name).cards({A: PLENTY, B: PLENTY}).build() for name in ("full", "alike")])
    bound = [
        card_pod(f"bound-{number}", "full", card[number // CARDS % 2]).bound_to(f"n{number // CARDS}").build()
        for number in range(nodes * CARDS)
    ]
    store.fill(PODS, bound)
    arriving = store.prepare(
        PODS,
        "ADDED",
        (
            card_pod(f"p-{number}", "alike", f"{A}|{B}").selects(_ZONE, "z1").gated().build()
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
    store.fill(NODES, (card_node(f"n{number}", (A, B)[number % 2]).build() for number in range(20)))
    return _gangs(
        store,
        a_queue("gangs").cards({A: 9, B: 10}).capability(cpu=1000, memory="1Ti"),
        sized(30, scale, 2),
        20,
        lambda name, number: (
            card_pod(name, "gangs", f"{A}|{B}").request("cpu", f"{1000 + 37 * number}m").limit("cpu", 4)
        ),
    )


def puzzling_gangs(store: Store, scale: float) -> Act:
    """Gangs of 20 pods of which each asks for another even number of cards, where an odd number of either card is left.

    All together ask for just as many as there are, and no two gangs for the same.
    """
    store.fill(NODES, (a_node(f"n{number}").card((A, B)[number % 2], 64).build() for number in range(16)))

    def member(name: str, number: int) -> PodBuilder:
        gang = 1 + int(name.split("-")[1])
        more = 2 * (number == 10 + gang // 6) - 2 * (number == 1 + gang % 6)
        return a_pod(name).gpu(2 * number + 2 + more).card(f"{A}|{B}").in_queue("gangs")

    return _gangs(store, a_queue("gangs").cards({A: 211, B: 209}), sized(30, scale, 2), 20, member)


def many_gangs(store: Store, scale: float) -> Act:
    """Gangs of ten alike, and quota for fifty of them."""
    count = sized(1000, scale, 4)
    store.fill(NODES, (card_node(f"n{number}", A).build() for number in range(20)))
    queue = a_queue("gangs").cards({A: count // 2 + 5})
    return _gangs(store, queue, count, 10, lambda name, _: card_pod(name, "gangs", A))


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
        a_queue("gangs").shares(core=PLENTY, memory=PLENTY),
        1,
        nodes * 16,
        lambda name, _: _share(name, "gangs").needs_node(_ZONE, "z1", "z2"),
    )


def endless_alternatives(store: Store, scale: float) -> Act:
    """Three pods that name 37,000 cards each, of which there is none; each changes twenty times."""
    count = sized(_ALTERNATIVES, scale, 20)
    expression = "|".join(f"c{number:05d}" for number in range(count))
    store.fill(NODES, (card_node(f"n{number}", A).build() for number in range(20)))
    store.fill(QUEUES, [a_queue("hostile").cards({A: PLENTY, "c00000": 5}).build()])
    pods = [card_pod(f"p-{number}", "hostile", expression).gated() for number in range(3)]
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


def _share(name: str, queue: str) -> PodBuilder:
    return a_pod(name).mgpu(core=50, memory=40_000).in_queue(queue)


def _labelled(node: NodeBuilder, labels: dict[str, str]) -> NodeBuilder:
    return node.put("metadata", "labels", value={**node.raw["metadata"]["labels"], **labels})


def template_of_many(store: Store, scale: float) -> Act:
    """A template that all who wait are made by is deleted and made anew, with another count each time."""
    store.fill(NODES, [card_node("n0", A).build()])
    quota = {"capability": {"gpu.example.com": {"count": 0}}}
    store.fill(QUEUES, [a_queue("hostile").devices(quota).build()])
    templates = [
        a_template("t").exactly("r", "gpu.example.com", count=1 + number % 2) for number in range(20)
    ]
    store.fill(RESOURCE_CLAIM_TEMPLATES, [templates[-1].build()])
    pods = (a_pod(f"p-{number}").in_queue("hostile") for number in range(sized(5000, scale, 100)))
    store.fill(PODS, (pod.claim("dev", template="t").gated().build() for pod in pods))
    events = [
        store.prepare(RESOURCE_CLAIM_TEMPLATES, kind, [template.build()])
        for template in templates
        for kind in ("DELETED", "ADDED")
    ]

    async def act(stage: Stage) -> None:
        for event in events:
            store.tell(event)
            await asyncio.sleep(_BETWEEN_S)
        await stage.calm()

    return act


def nowhere(store: Store, scale: float) -> Act:
    """Nothing happens but the start: each of 100,000 pods waits in a queue of its own that nobody has made."""
    store.fill(NODES, [card_node("n0", A).build()])
    name = "bench-name"
    gated = card_pod(name, name, A).gated().put("metadata", "resourceVersion", value="1").build()
    text = orjson.dumps(gated)
    of_name = name.encode()
    namespace = gated["metadata"]["namespace"]
    count = sized(100_000, scale, 20)
    store.crowd(
        PODS, Crowd(namespace, "pod-", count, lambda number: text.replace(of_name, b"pod-%d" % number))
    )

    async def act(stage: Stage) -> None:
        await stage.calm()

    return act
