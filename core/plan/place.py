"""Where one pod fits, and how well: what filter, search and scores say about each node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core import reasons
from core.cards.discovery import CardStock
from core.cards.expression import is_excessive, preference, split
from core.cards.mended import passed_over
from core.crossquota.book import GuestBook
from core.crossquota.filter import node_score as guest_score
from core.extender.cluster import Cluster
from core.extender.pipeline import Question, Standing, question, refusals
from core.mgpu import records
from core.mgpu.allocation import Doubt, node_score, preferred
from core.mgpu.ask import MgpuAsk
from core.objects import Node, Pod
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.violations import show


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

    unfits: tuple[Refusal, ...]
    share: SharePlace | None
    guest_score: float | None
    """CrossQuota's, for a pod without GPU on a node with GPUs."""
    card: CardPlace | None


def place(ledger: Ledger, guests: GuestBook, pod: Pod) -> Mapping[str, Place]:
    """Every node by name, for a pod judged as if it were unbound and did not count itself.

    `pod` has the labels that CrossQuota's selector looks at.
    """
    settings, cluster = ledger.settings, Cluster(ledger, guests)
    asked = question(pod, settings)
    found = {}
    for name, node in sorted(ledger.nodes.items()):
        standing = cluster.standing(node, asked)
        unfits = refusals(asked, standing, settings)
        has_room = not any(unfit.code != reasons.CROSS_QUOTA_EXCEEDED for unfit in unfits)
        no_card = _no_card(ledger, pod, node)
        found[name] = Place(
            unfits=(*unfits, *(() if no_card is None else (no_card,))),
            share=_share(asked, standing, settings) if has_room else None,
            guest_score=_guest_score(asked, standing, settings),
            card=_card(ledger, pod, node),
        )
    return found


def _share(asked: Question, node: Standing, settings: Settings) -> SharePlace | None:
    if not isinstance(asked.shares, MgpuAsk) or node.shares is None:
        return None
    mgpu, (model, state) = settings.mgpu, node.shares
    placement = preferred(asked.shares, model, state, mgpu)
    if isinstance(placement, Doubt):
        return None
    score = node_score(
        asked.shares, model, state, placement.indexes, policy=mgpu.policy, weight=mgpu.weight_of_core
    )
    return SharePlace(
        records.annotations(placement.indexes), float(score), float(placement.value), placement.optimal
    )


def _guest_score(asked: Question, node: Standing, settings: Settings) -> float | None:
    if asked.guest is None or node.quota is None:
        return None
    return float(guest_score(asked.guest, node.quota, node.used or {}, settings.cross_quota))


def _no_card(ledger: Ledger, pod: Pod, node: Node) -> Refusal | None:
    """Why a node cannot serve a pod with the cards that it names, as many as it asks for; None when it can.

    What others hold there counts until they are gone; the pod itself does not.
    """
    if not (ledger.settings.features.cards and pod.card_name) or is_excessive(pod.card_name):
        return None
    carried = ledger.inventory.on_node(node.name)
    able = [card for card in split(pod.card_name) if card in carried]
    if not able:
        notes = passed_over(ledger.inventory, node, split(pod.card_name))
        told = "; ".join((f"the node carries no {show(pod.card_name)}", *notes))
        return Refusal(reasons.CARD_NOT_ON_NODE, told, unresolvable=True)
    others = [other for other in ledger.pods_on(node.name) if other.uid != pod.uid]
    best = max((_room(pod, carried[card], others) for card in able), key=lambda room: room.missing)
    if best.missing >= 0:
        return None
    told = f"{best.free} of {best.total} {best.resource} are free, {best.asked} are asked for"
    return Refusal(reasons.CARD_NO_ROOM, told, unresolvable=best.asked > best.total)


@dataclass(frozen=True, slots=True)
class _Room:
    """What a node has of a card's resource, whole pieces."""

    resource: str
    total: int
    free: int
    asked: int

    @property
    def missing(self) -> int:
        """Negative when the pod finds too few."""
        return self.free - self.asked


def _room(pod: Pod, stock: CardStock, others: Iterable[Pod]) -> _Room:
    used = sum(other.requests.get(stock.resource, 0) for other in others)
    asked = -(-pod.requests.get(stock.resource, 0) // 1000)
    return _Room(stock.resource, stock.milli // 1000, max(0, stock.milli - used) // 1000, asked)


def _card(ledger: Ledger, pod: Pod, node: Node) -> CardPlace | None:
    if not ledger.settings.features.cards:
        return None
    found = preference(split(pod.card_name), ledger.inventory.on_node(node.name))
    return None if found is None else CardPlace(found[0], float(found[1]))
