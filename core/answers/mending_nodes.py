"""Nodes that would serve a waiting pod if they did not lack a label or a resource: who they are, and that one gets it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.answers.ending import ROOM
from core.answers.remedy import Case, Found, Step
from core.answers.words import amount, counted, listed
from core.cards.expression import is_excessive, split
from core.cards.mended import mended, passed_over
from core.objects import Node, Pod
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish, in_order

_STEP: Final = 200
"""Nodes that are looked at in half a millisecond."""
_CARDS: Final = ROOM | {reasons.GET_TASK_REQUEST_RESOURCE_FAILED}
"""What another node with the card helps against."""
_ALIKE: Final = 4
_SINGLES: Final = 4
_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class IllLabelled:
    """Nodes that show the product of a card that a pod names, and do not carry it, all for one reason."""

    message: str
    nodes: tuple[str, ...]


def ill_labelled(ledger: Ledger, pod: Pod) -> Steps[list[IllLabelled]]:
    """All of them, those of which there are most first."""
    if not (ledger.settings.features.cards and pod.card_name) or is_excessive(pod.card_name):
        return []
    cards, pace = frozenset(split(pod.card_name)), Pace(_STEP)
    found: dict[str, list[str]] = {}
    for name in tuple(ledger.nodes):
        if pace.due():
            yield
        node = ledger.nodes.get(name)
        notes = passed_over(ledger.inventory, node, cards) if node is not None else ()
        if notes:
            found.setdefault("; ".join(notes), []).append(name)
    alike: list[IllLabelled] = []
    for message, nodes in found.items():
        if pace.due():
            yield
        alike.append(IllLabelled(message, tuple((yield from in_order(nodes, str, _STEP)))))
    return (yield from in_order(alike, lambda one: (-len(one.nodes), one.message), _STEP))


def mend_nodes(case: Case) -> Found | None:
    """As few such nodes as will do, of those that lack the same; the pod is let in for the cards that these carry then."""
    if case.hold.why.code not in _CARDS:
        return None
    ledger, pod = case.whatif.ledger, case.obstacle.pod
    best: Found | None = None
    for alike in finish(ill_labelled(ledger, pod))[:_ALIKE]:
        names = [name for name in alike.nodes if name not in case.change.nodes and _open(ledger.nodes[name])]
        found = _fewest(case, alike.message, list(_carrying(ledger, pod, names[:_TOGETHER])))
        if found is not None and found.hold is None:
            return found
        best = best or found
    return best


def _open(node: Node) -> bool:
    """Whether pods would come to the node; one that is closed needs more than that."""
    return node.ready and not node.unschedulable


def _fewest(case: Case, message: str, nodes: list[tuple[Node, str]]) -> Found | None:
    """One of these nodes, else the first of them that are enough; None where not even all of them change anything."""

    def found(chosen: list[tuple[Node, str]]) -> Found:
        change = case.change.node(*(node for node, _ in chosen))
        return Found((_step(case.whatif.ledger, message, chosen),), change, case.outcome(change))

    best: Found | None = None
    for one in nodes[:_SINGLES]:
        mended_one = found([one])
        if mended_one.hold is None:
            return mended_one
        if best is None and mended_one.hold.why.code != case.hold.why.code:
            best = mended_one
    if len(nodes) < 2 or (together := found(nodes)).hold is not None:
        return best
    low, high = 2, len(nodes)
    while low < high:
        middle = (low + high) // 2
        fewer = found(nodes[:middle])
        if fewer.hold is None:
            together, high = fewer, middle
        else:
            low = middle + 1
    return together


def _carrying(ledger: Ledger, pod: Pod, names: Iterable[str]) -> Iterator[tuple[Node, str]]:
    """Those of the nodes that can be mended, as they would be, each with the card that it carries then."""
    for name in names:
        found = next(_ways(ledger, pod, ledger.nodes[name]), None)
        if found is not None:
            yield found


def _ways(ledger: Ledger, pod: Pod, node: Node) -> Iterator[tuple[Node, str]]:
    inventory = ledger.inventory
    for card in split(pod.card_name):
        known = inventory.resources_of(card)
        for resource in pod.extended:
            least = max(pod.limits.get(resource, 0), pod.requests.get(resource, 0))
            whole = (
                None if known and resource not in known else mended(inventory, node, card, resource, least)
            )
            if whole is not None:
                yield whole, card


def _step(ledger: Ledger, message: str, nodes: list[tuple[Node, str]]) -> Step:
    names, (first, card) = [node.name for node, _ in nodes], nodes[0]
    stock = ledger.inventory.discovered(first).cards[card]
    each = " each" if len(nodes) > 1 else ""
    text = (
        f"mend {counted(len(nodes), 'node')}, {listed(names)}, so that {amount(card, stock.milli)} {card} "
        f"({stock.resource}) are there{each}: {message}"
    )
    return Step("node", text, object=f"Node {first.name}", key=card)
