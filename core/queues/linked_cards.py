"""What the book of devices asks about cards that are the same devices as DeviceClasses, see core.dra.links."""

from collections.abc import Mapping

from core.cards.ask import CardAsk, card_ask
from core.cards.expression import BAR, split
from core.cards.inventory import Inventory
from core.dra.links import Ask
from core.objects import Pod
from core.queues.demand import share_card, shares_count
from core.queues.limits import Limits
from core.queues.shortfall import card_shortage
from core.refusal import Refusal
from core.settings import Settings


class LinkedCards:
    """Reads the nodes' cards and the queues' quotas as they are when it is asked; `linked` are the cards with classes."""

    def __init__(
        self,
        linked: Mapping[str, tuple[str, ...]],
        inventory: Inventory,
        limits: Mapping[str, Limits],
        settings: Settings,
    ) -> None:
        self._settings = settings
        self._linked = linked
        self._inventory = inventory
        self._limits = limits

    def named(self, pod: Pod) -> bool:
        """Whether a pod names one of these cards, or has shares that may be of one; an excessive expression may."""
        if shares_count(pod, self._settings):
            return True
        if not pod.card_name:
            return False
        cards = split(pod.card_name)
        return not cards or any(card in self._linked for card in cards)

    def asked(self, pod: Pod) -> Ask | None:
        """The card that a pod is charged with; None for none, and while the choice among several is open."""
        on_node = self._inventory.on_node(pod.node_name) if pod.bound else None
        asked = card_ask(pod, self._inventory.resources_of, on_node)
        if not isinstance(asked, CardAsk) or BAR in asked.card:
            return None
        return Ask(asked.card, asked.milli, asked.resource)

    def of_shares(self, pod: Pod) -> tuple[str, int] | None:
        """The card that the mGPU shares of a pod count against, and how much of it in thousandths; None for none."""
        return share_card(pod, self._inventory) if shares_count(pod, self._settings) else None

    def shortage(self, queue: str, card: str, milli: int, used: int, *, own: bool) -> Refusal | None:
        """Why so much more of a card does not fit beside what is used: the queue's `own` pods, or those below it.

        As for pods that name the card, one that is not listed is nothing for the queue's own pods, and no limit for those below.
        """
        limits = self._limits.get(queue)
        if limits is None:
            return None
        limit = limits.cards.get(card, 0 if own or limits.malformed else None)
        if limit is None or used + milli <= limit:
            return None
        return card_shortage(queue, limits, card, milli, used + milli, limit, denied="allocate")
