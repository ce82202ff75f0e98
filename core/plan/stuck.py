"""Why a pod with mGPU shares that was let in finds no node, and what its owner can do about it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from core import reasons
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.destination import have_room, led_to, nominated_for
from core.mgpu.filter import fits, mismatch
from core.mgpu.node import NodeModel, canonical, model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.pieces import in_steps
from core.objects import Node, Pod
from core.objects.taints import untolerated
from core.plan.admitted import AdmittedNodes
from core.plan.node_load import EVERYBODY, NodeLoad, requests_of
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Steps

NAMED: Final = 5
"""So many nodes are named at most."""

_ANEW: Final = "what its owner creates instead is led to nodes that have room then"


def room_gone(ledger: Ledger, pod: Pod, admitted: AdmittedNodes) -> Steps[str]:
    """Why none of the nodes that the pod was led to takes it any more; empty while one does, or where it may go anywhere.

    Pods of a lower priority do not stand in its way if its scheduler may displace them. `admitted` is asked about the pod's rules,
    here and below: they may say very much.
    """
    ask = mgpu_ask(pod)
    if not isinstance(ask, MgpuAsk):
        return ""
    found = []
    for name in led_to(pod):
        why = yield from _closed(ledger, pod, ask, name, pod.displaces_below, admitted)
        if not why:
            return ""
        found.append(f"node {name} {why}")
    return ", ".join(found)


def place_gone(ledger: Ledger, pod: Pod, admitted: AdmittedNodes) -> Steps[bool]:
    """Whether the node does not take the pod any more that it was nominated for, as it is: nobody is to be displaced."""
    ask, name = mgpu_ask(pod), nominated_for(pod)
    if not name or not isinstance(ask, MgpuAsk):
        return False
    return bool((yield from _closed(ledger, pod, ask, name, EVERYBODY, admitted)))


def nodes_with_room(
    ledger: Ledger, pod: Pod, but: str, admitted: AdmittedNodes, among: Collection[str] | None = None
) -> Steps[list[str]]:
    """The nodes, save one, that the pod's rules admit and that would take it now; NAMED of them and one more at most.

    Nodes `among` which they have to be, where such are named, are the only ones that are looked at.
    """
    ask, found = mgpu_ask(pod), list[str]()
    if not isinstance(ask, MgpuAsk):
        return found
    for name in [name for name in (ledger.nodes if among is None else among) if name != but]:
        yield
        node = ledger.nodes.get(name)
        if node is None or not model_of(node).serves:
            continue
        if not (yield from _closed(ledger, pod, ask, name, EVERYBODY, admitted)):
            found.append(name)
            if len(found) > NAMED:
                break
    return found


def takes_now(ledger: Ledger, pod: Pod, node: str, admitted: AdmittedNodes) -> Steps[bool]:
    """Whether this node would take the pod now, as it is, and all that were promised room there.

    So it is when this returns; `pod` may be an older state of itself by then.
    """
    ask = mgpu_ask(pod)
    if not isinstance(ask, MgpuAsk):
        return False
    return not (yield from _closed(ledger, pod, ask, node, EVERYBODY, admitted))


def room_gone_notice(queue: str, why: str) -> tuple[str, str]:
    """The code and the words for an event on a pod of which `room_gone` said this."""
    return reasons.MGPU_ROOM_GONE, (
        f"Queue <{queue}>: the pod was led to nodes that do not take it any more: {why}. Nobody can lead it elsewhere now that "
        f"its gate is gone: undo that, or delete the pod, {_ANEW}. Where reservation.evictAfter is set that comes by itself"
    )


def node_full_notice(queue: str, node: str, denials: int, elsewhere: Sequence[str]) -> tuple[str, str]:
    """The code and the words for an event on a pod whose bind was refused so often at a node while others have room."""
    return reasons.MGPU_NODE_FULL, (
        f"Queue <{queue}>: node {node} has no room for the pod, its bind there was refused {denials} times; room is on "
        f"{_listed(elsewhere)}. The scheduler stays with its choice: have it ask the extender, or delete the pod, {_ANEW}"
    )


def _listed(names: Sequence[str]) -> str:
    more = "" if len(names) <= NAMED else " and others"
    return ", ".join(names[:NAMED]) + more


def _closed(
    ledger: Ledger, pod: Pod, ask: MgpuAsk, name: str, priority: int, admitted: AdmittedNodes
) -> Steps[str]:
    """Why a node does not take the pod; empty where it does.

    Of what pods on the node request, that of this priority and higher ones counts; on its cards all of them do. Where room is
    booked for the pod others may have taken of it: then it has what they leave after those who come before it and have theirs
    there too.
    """
    while True:
        node = ledger.nodes.get(name)
        if node is None:
            return "is gone"
        why = next(_not_open(pod, node), "")
        if why:
            return why
        if name not in (yield from admitted.admitted(pod.node_rules, (name,))):
            return "has other labels than the pod asks for"
        why = yield from in_steps(partial(_short, ledger, pod, ask, node, priority))
        if ledger.nodes.get(name) is node:
            return why


def _short(ledger: Ledger, pod: Pod, ask: MgpuAsk, node: Node, priority: int) -> str:
    """Why an open node that the pod's rules admit does not take it."""
    name, model = node.name, model_of(node)
    unfit = mismatch(ask, model)
    if unfit is not None:
        return f"serves it no more ({unfit.message})"
    expected = _expected_before(ledger, pod, name, model)
    return _short_of_cards(ledger, pod, ask, name, model, expected) or _short_of_sums(
        ledger, pod, node, priority, expected
    )


def _short_of_cards(
    ledger: Ledger, pod: Pod, ask: MgpuAsk, name: str, model: NodeModel, expected: Iterable[Entry]
) -> str:
    """Why the cards of a node do not do; empty where they do."""
    on_node = [each for each in ledger.pods_on(name) if each.uid != pod.uid]
    state = canonical(occupancy(model, on_node, ledger.settings.mgpu).state)
    if fits(ask, model, state, ledger.settings) is not None:
        return "has no room on its cards"
    promised = [found for other in expected if (found := other.demand.mgpu) is not None]
    beside_them = not promised or have_room((ask, *promised), model, state, ledger.settings.mgpu)
    return "" if beside_them else "has promised its room to others"


def _short_of_sums(ledger: Ledger, pod: Pod, node: Node, priority: int, expected: Iterable[Entry]) -> str:
    """Why a node has too little of what the pod requests, CPU and shares alike; empty where it has enough."""
    load = NodeLoad(node, lambda: _others_on(ledger, pod, node.name))
    for other in expected:
        load.expect(other.pod)
    requests = requests_of(pod)
    if not load.shows(requests):
        return "does not show all devices that the pod asks for"
    return load.short_of(requests, priority)


def _expected_before(ledger: Ledger, pod: Pod, name: str, model: NodeModel) -> list[Entry]:
    """Whose room on the node counts before the pod has any there: everybody's, or of those with whom it is booked there the older ones.

    Not that of those whom the node, as it is now, cannot serve.
    """
    booked = ledger.led_to(name)
    own = booked.get(pod.uid)
    return [
        each
        for uid, each in booked.items()
        if uid != pod.uid and (own is None or each.order < own.order) and _serves(model, each.demand.mgpu)
    ]


def _serves(model: NodeModel, ask: MgpuAsk | None) -> bool:
    return ask is None or mismatch(ask, model) is None


def _others_on(ledger: Ledger, pod: Pod, name: str) -> list[Pod]:
    return [each for each in (*ledger.pods_on(name), *ledger.bystanders_on(name)) if each.uid != pod.uid]


def _not_open(pod: Pod, node: Node) -> Iterator[str]:
    if node.unschedulable:
        yield "is cordoned"
    if not node.ready:
        yield "is not ready"
    taint = untolerated(node.taints, pod.tolerations)
    if taint is not None:
        yield f"has the taint {taint}"
