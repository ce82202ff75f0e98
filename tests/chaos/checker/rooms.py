"""At every change: no card of a node is booked beyond itself."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.chaos.checker import books, terms
from tests.chaos.checker.history import Change, World
from tests.chaos.checker.log import Object
from tests.chaos.checker.terms import Violation


def overbooked(change: Change, world: World) -> Iterator[Violation]:
    """What the node of a pod that has just been seen on it has given away too much of.

    A pod takes its node's cards from when it is seen bound there until it has ended or is gone.
    """
    pod = change.after
    if change.kind != "pods" or pod is None or not books.node_of(pod) or not books.is_ours(pod):
        return
    if (
        change.before is not None
        and books.node_of(change.before)
        and _indexes(pod) == _indexes(change.before)
    ):
        return
    node = world.named("nodes").get(books.node_of(pod))
    if node is None:
        return
    there = [
        each
        for each in world.all("pods")
        if books.node_of(each) == books.node_of(pod) and not books.ended(each)
    ]
    proof = tuple(sorted(world.shown_by[each["metadata"]["uid"]].number for each in there))
    for text in (*_whole(node, there), *_cards(node, there)):
        yield Violation("card", change.entry.ended, change.about, text, proof)


def _whole(node: Object, there: list[Object]) -> Iterator[str]:
    allocatable = books.whole((node.get("status") or {}).get("allocatable", {}).get(terms.GPU, 0))
    given = sum(books.asked(pod, terms.GPU) for pod in there)
    if given > allocatable:
        yield f"{given} cards of node {node['metadata']['name']} are given away, it has {allocatable}"


def _cards(node: Object, there: list[Object]) -> Iterator[str]:
    name, cards, memory = node["metadata"]["name"], *cards_of(node)
    used = taken(there, memory)
    for card in sorted(used.core):
        core, mib, count = used.core[card], used.memory[card], used.containers[card]
        if card >= cards:
            yield f"card {card} of node {name} is given away, it has {cards}"
        elif core > terms.CORE_OF_A_CARD or mib > memory or count > terms.CONTAINERS_OF_A_CARD:
            yield f"card {card} of node {name} has {core} of 100 core, {mib} of {memory} MiB and {count} containers on it"


def cards_of(node: Object) -> tuple[int, int]:
    """How many mGPU cards a node has, and the MiB of each."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    cards = books.whole(allocatable.get(terms.CORE, 0)) // terms.CORE_OF_A_CARD
    return cards, books.whole(allocatable.get(terms.MEMORY, 0)) // cards if cards else 0


class Taken:
    """What is taken of each card of a node."""

    def __init__(self) -> None:
        self.core: Counter[int] = Counter()
        self.memory: Counter[int] = Counter()
        self.containers: Counter[int] = Counter()


def taken(there: list[Object], memory_of_a_card: int) -> Taken:
    """By the records of the pods on a node. Shares are dealt out evenly over the cards of a container."""
    found = Taken()
    for pod in there:
        for share in books.shares(pod):
            indexes = _indexes(pod).get(share.container, [])
            for card in indexes:
                found.core[card] += share.core // len(indexes)
                found.memory[card] += (
                    memory_of_a_card if share.memory is None else share.memory // len(indexes)
                )
                found.containers[card] += 1
    return found


def _indexes(pod: Object) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for key, value in books.annotations(pod).items():
        if key.startswith(terms.INDEX_OF):
            found[key.removeprefix(terms.INDEX_OF)] = [int(part) for part in value.split(",") if part.strip()]
    return found
