"""What one pod wants from its queue, and what it is charged with."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from core import names
from core.cards.ask import AskError, CardAsk, card_ask
from core.cards.assigned import recorded_share, share_milli
from core.cards.inventory import Inventory
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.objects import Pod
from core.queues.amounts import Amounts
from core.queues.usage import cpu_memory_of
from core.refusal import Refusal
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod asks for, in thousandths.

    `card` is what it is booked under: the card itself, or the whole expression while the choice is open.
    """

    card: CardAsk | None
    shares: Mapping[str, int]
    mgpu: MgpuAsk | None
    cpu_memory: Amounts
    """What it uses of its queue's CPU and memory; nothing where card pods are free of them."""
    problem: str
    """Why what is asked for cannot be computed; empty when it can."""
    share_milli: int = 0
    """What the shares are of a card; 0 where they count against no card."""
    share_card: str = ""
    """Which card that is; empty while nobody knows, and where it is none."""

    @property
    def cards(self) -> frozenset[str]:
        """The cards, and the mGPU resources, any of which on a node may serve the pod."""
        cards = self.card.alternatives if self.card is not None else ()
        return frozenset((*cards, *(names.MGPU_RESOURCES if self.mgpu is not None else ())))

    @property
    def whole_cards(self) -> Mapping[str, int]:
        """What it takes of nodes that have cards as a whole: card -> thousandths; the expression while the choice is open."""
        return {self.card.card: self.card.milli} if self.card is not None and self.card.milli else {}

    @property
    def amounts(self) -> dict[str, int]:
        """Key -> thousandths, as charged; amounts of zero are left out."""
        charged = dict(self.shares)
        if self.card is not None and self.card.milli:
            charged[self.card.card] = self.card.milli
        if self.share_card and self.share_milli:
            charged[self.share_card] = charged.get(self.share_card, 0) + self.share_milli
        return charged


def demand_of(pod: Pod, inventory: Inventory, card_resources: Container[str], settings: Settings) -> Demand:
    """The demand of a pod that asks for something of ours; what a switched-off feature asks for is left out.

    `card_resources` as by `usage.card_resources`; looked at only where card pods are free of CPU and memory.
    """
    shares: dict[str, int] = {}
    mgpu: MgpuAsk | Refusal | None = None
    if settings.features.mgpu and pod.asks_mgpu:
        shares = {key: pod.requests[key] for key in names.MGPU_RESOURCES if pod.requests.get(key)}
        mgpu = mgpu_ask(pod)
    asked = _cards(pod, inventory) if settings.features.cards and pod.card_name else None
    problems = [problem.message for problem in (asked, mgpu) if isinstance(problem, AskError | Refusal)]
    card = None if isinstance(asked, AskError) else asked
    of_card, milli = share_card(pod, inventory) if shares_count(pod, settings) else ("", 0)
    return Demand(
        card=card,
        shares=shares,
        mgpu=None if isinstance(mgpu, Refusal) else mgpu,
        cpu_memory=cpu_memory_of(pod, card_resources, settings, has_cards=card is not None),
        problem="; ".join(problems),
        share_milli=milli,
        share_card=of_card,
    )


def shares_count(pod: Pod, settings: Settings) -> bool:
    """Whether the mGPU shares of a pod count against the quota of their card."""
    features = settings.features
    return pod.asks_mgpu and settings.mgpu.card_quota and features.mgpu and features.cards


def share_card(pod: Pod, inventory: Inventory) -> tuple[str, int]:
    """The card of a pod's shares, "" for none, and how much of it: by its record, else by the node that it is bound to."""
    waits = pod.gated and not pod.bound
    recorded = None if waits else recorded_share(pod)
    if recorded is not None:
        return recorded
    product = inventory.product_on(pod.node_name) if pod.bound else None
    return (product.name if product is not None else ""), share_milli(pod)


def _cards(pod: Pod, inventory: Inventory) -> CardAsk | AskError | None:
    on_node = inventory.on_node(pod.node_name) if pod.bound else None
    return card_ask(pod, inventory.resources_of, on_node)
