"""The fewest pods that would let a waiting pod in by ending: those of its queue, those on the nodes, those before it in line."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from core import names, reasons
from core.answers.holders import holders_of, holders_on_nodes
from core.answers.raising import QUOTA
from core.answers.remedy import Case, Found, Step
from core.answers.shortage import shortest_for, shortest_level
from core.answers.words import counted, listed
from core.mgpu import records
from core.mgpu.ask import booked_parts
from core.mgpu.node import Card, model_of
from core.mgpu.occupancy import occupancy
from core.objects import Pod
from core.queues.amounts import CPU, MEMORY
from core.queues.ledger import Ledger
from core.steps import finish

ROOM: Final = frozenset({reasons.NO_FREE_CARD, reasons.MGPU_NO_ROOM, reasons.MIXED_CARDS})
"""What room on the nodes helps against."""

_SINGLES: Final = 12
_NODES: Final = 8
_PRUNED: Final = 24


def end_pods(case: Case) -> Found | None:
    """Pods that hold what is short. What ends in the meantime of itself is the estimate's business."""
    if case.hold.why.code not in QUOTA | ROOM:
        return None
    with case.whatif.made(case.change):
        groups = _groups(case)
    best: list[Pod] | None = None
    for pods in groups:
        found = _fewest(case, pods, below=len(best) if best is not None else None)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
        if best is not None and len(best) == 1:
            break
    if best is None:
        return None
    change = case.change.without(*(pod.uid for pod in best))
    return Found((_step(best),), change, None)


def leave_line(case: Case) -> Found | None:
    """The first of a fifo queue gone, which the others wait for."""
    behind = case.hold.behind
    if behind is None:
        return None
    ledger = case.whatif.ledger
    group = ledger.group_of(behind)
    members = [behind] if group is None else [pod for pod in ledger.members(group) if pod.gated]
    if any(pod.uid == case.target.pod.uid for pod in members):
        return None
    change = case.change.without(*(pod.uid for pod in members))
    what = f"Pod {behind.key}" if group is None else f"{group.title} ({counted(len(members), 'pod')})"
    text = f"take {what} out of the line, which stands before it in a first in, first out queue"
    step = Step("leave", text, pods=tuple(pod.key for pod in members))
    return Found((step,), change, case.outcome(change))


def _groups(case: Case) -> list[list[Pod]]:
    """The pods among which to look, each list by itself, the largest holder first in each."""
    ledger, entry = case.whatif.ledger, case.obstacle
    demand = entry.demand
    if case.hold.why.code in QUOTA:
        figures = finish(shortest_for(ledger, [entry]))
        keys = {figure.key for figure in figures if figure.limit is not None}
        match case.hold.why.code:
            case reasons.INSUFFICIENT_CPU_QUOTA:
                keys = {CPU}
            case reasons.INSUFFICIENT_MEMORY_QUOTA:
                keys = {MEMORY}
            case _:
                keys -= {CPU, MEMORY}
        level = shortest_level(entry.queue, [one for one in figures if one.key in keys])
        return [[one.pod for one in finish(holders_of(ledger, level, keys))]]
    if demand.mgpu is not None:
        return _by_node(ledger, names.MGPU_RESOURCES, demand.cards)
    return _by_node(ledger, (), demand.card.alternatives if demand.card is not None else ())


def _by_node(
    ledger: Ledger, resources: Sequence[str], cards: Sequence[str] | frozenset[str]
) -> list[list[Pod]]:
    """The pods of each node that has what is wanted; those of nodes with fewer pods first, then all of them together."""
    if resources:
        nodes = {
            name: sorted((pod for pod in ledger.pods_on(name) if pod.asks_mgpu), key=_largest_first)
            for name, node in ledger.nodes.items()
            if any(node.allocatable.get(resource) for resource in resources)
        }
        everywhere = [pod for pods in nodes.values() for pod in pods]
    else:
        everywhere = [one.pod for one in finish(holders_on_nodes(ledger, cards))]
        nodes = {}
        for pod in everywhere:
            nodes.setdefault(pod.node_name, []).append(pod)
    found = sorted((pods for pods in nodes.values() if pods), key=len)[:_NODES]
    return [*found, everywhere] if len(found) > 1 else found


def _largest_first(pod: Pod) -> tuple[list[int], int, str]:
    return [-pod.requests.get(resource, 0) for resource in names.MGPU_RESOURCES], pod.created, pod.key


def _fewest(case: Case, pods: list[Pod], below: int | None) -> list[Pod] | None:
    """As few of these pods as were found to help; None where not even all of them do, or not fewer than `below`."""
    pods = [pod for pod in pods if not _together(case, pod)]
    for pod in _unlike(case.whatif.ledger, pods)[:_SINGLES]:
        if case.helps(case.change.without(pod.uid)):
            return [pod]
    if below is not None and below <= 2:
        return None
    if len(pods) < 2 or not case.helps(case.change.without(*(pod.uid for pod in pods))):
        return None
    low, high = 2, len(pods)
    while low < high:
        middle = (low + high) // 2
        if case.helps(case.change.without(*(pod.uid for pod in pods[:middle]))):
            high = middle
        else:
            low = middle + 1
    chosen = pods[:high]
    for pod in list(reversed(chosen))[:_PRUNED]:
        fewer = [one for one in chosen if one.uid != pod.uid]
        if fewer and case.helps(case.change.without(*(one.uid for one in fewer))):
            chosen = fewer
    return chosen


def _unlike(ledger: Ledger, pods: list[Pod]) -> list[Pod]:
    """One of each kind, the smallest first: whether another one of the same size on the same node ends is all the same.

    Of shares it is if the cards which they have there are alike.
    """
    left = {name: _left_on(ledger, name) for name in {pod.node_name for pod in pods if pod.shares}}
    kinds: dict[object, Pod] = {}
    for pod in pods:
        cards = _cards(pod, left[pod.node_name]) if pod.shares else ()
        kinds.setdefault((tuple(sorted(pod.requests.items())), pod.node_name, pod.card_name, cards), pod)
    return list(reversed(kinds.values()))


def _left_on(ledger: Ledger, name: str) -> tuple[Card, ...]:
    """What is left of each card of a node; nothing of one that is not there."""
    node = ledger.nodes.get(name)
    if node is None:
        return ()
    return occupancy(model_of(node), ledger.pods_on(name), ledger.settings.mgpu).state.cards


def _cards(pod: Pod, left: Sequence[Card]) -> Hashable:
    """What is left of each card that a pod has by its record, and what it takes of it."""
    taken: dict[int, list[tuple[int, int]]] = {}
    record = records.recorded(pod)
    for part in booked_parts(pod):
        for number in record.get(part.container, ()):
            taken.setdefault(number, []).append((part.core, part.memory or 0))
    return frozenset(
        Counter(
            (left[number], *sorted(parts)) for number, parts in taken.items() if number < len(left)
        ).items()
    )


def _together(case: Case, pod: Pod) -> bool:
    """Whether a pod belongs to the group that waits: nobody ends a member to let in another one."""
    target = case.target.pod
    return pod.group_key != "" and pod.group_key == target.group_key


def _step(pods: list[Pod]) -> Step:
    keys = sorted(pod.key for pod in pods)
    text = f"{counted(len(pods), 'pod')} ending: {listed(keys)}"
    return Step("end", text, pods=tuple(keys))
