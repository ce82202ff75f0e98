"""Where one pod fits, and how well: what filter, search and scores say about each node."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.cards.expression import split
from core.mgpu import records
from core.mgpu.allocation import preferred
from core.mgpu.ask import AskProblem, MgpuAsk, mgpu_ask
from core.mgpu.filter import Unfit, fits
from core.mgpu.node import NodeModel, NodeState, model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.score import node_score
from core.objects import Node, Pod
from core.queues.ledger import Ledger


@dataclass(frozen=True, slots=True)
class SharePlace:
    """The cards that the pod would get. `score` 0..100 compares nodes, `combination` 0..1 placements on this node."""

    annotations: Mapping[str, str]
    score: float
    combination: float
    optimal: bool


@dataclass(frozen=True, slots=True)
class CardPlace:
    """The first alternative that the node has; 100 for the leftmost, half as much for each one further right."""

    card: str
    score: float


@dataclass(frozen=True, slots=True)
class Place:
    """One node; what does not apply to the pod is None."""

    unfit: Unfit | None
    share: SharePlace | None
    card: CardPlace | None


def place(ledger: Ledger, pod: Pod) -> Mapping[str, Place]:
    """Every node by name, for a pod judged as if it were unbound and did not count itself."""
    return dict(_places(ledger, pod))


def _places(ledger: Ledger, pod: Pod) -> Iterator[tuple[str, Place]]:
    features = ledger.settings.features
    ask = mgpu_ask(pod) if features.mgpu else None
    for name, node in sorted(ledger.nodes.items()):
        unfit, share = _share(ledger, pod, ask, node)
        yield name, Place(unfit, share, _card(ledger, pod, node) if features.cards else None)


def _share(
    ledger: Ledger, pod: Pod, ask: MgpuAsk | AskProblem | None, node: Node
) -> tuple[Unfit | None, SharePlace | None]:
    if ask is None:
        return None, None
    if isinstance(ask, AskProblem):
        return Unfit(ask.code, ask.message, unresolvable=True), None
    model = model_of(node)
    others = [other for other in ledger.pods_on(node.name) if other.uid != pod.uid]
    state = occupancy(model, others, ledger.settings.mgpu).state
    unfit = fits(ask, model, state, ledger.settings)
    return unfit, _placed(ledger, ask, model, state) if unfit is None else None


def _placed(ledger: Ledger, ask: MgpuAsk, model: NodeModel, state: NodeState) -> SharePlace | None:
    mgpu = ledger.settings.mgpu
    placement = preferred(ask, model, state, mgpu)
    if placement is None:
        return None
    score = node_score(ask, model, state, placement.indexes, policy=mgpu.policy, weight=mgpu.weight_of_core)
    return SharePlace(
        records.annotations(placement.indexes), float(score), float(placement.value), placement.optimal
    )


def _card(ledger: Ledger, pod: Pod, node: Node) -> CardPlace | None:
    alternatives = split(pod.card_name)
    on_node = ledger.inventory.on_node(node.name)
    for position, card in enumerate(alternatives):
        if card in on_node:
            return CardPlace(card, 100 * 0.5**position if len(alternatives) > 1 else 0.0)
    return None
