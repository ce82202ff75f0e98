"""Whether one pod could be lifted now, and with which card."""

from collections.abc import Iterable

from core import reasons
from core.cards.ask import CardAsk
from core.cards.expression import BAR, whole_card
from core.dra.links import Ask
from core.mgpu.ask import MgpuAsk
from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.confinement import Confinement
from core.plan.pools import CardPools
from core.plan.room import Destination, ShareRoom
from core.plan.stock import FreeCards
from core.quantity import render_milli
from core.queues.check import Balance
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.shortfall import queue_missing
from core.refusal import Refusal
from core.steps import Steps


class Choice:
    """Asks the queue's numbers first, then the nodes. Changes nothing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        admitted = AdmittedNodes(ledger)
        self._room = ShareRoom(ledger, admitted)
        self._stock = FreeCards(ledger, admitted)
        self._pools = CardPools(ledger)
        self._brought: tuple[str, str] | None = None
        """The pod that was asked about last, by UID, and the card of the pool that may bring its shares, where no node has room."""

    def choose(
        self,
        entry: Entry,
        balance: Balance | None,
        confined: Confinement | None,
        within: tuple[str, ...] = (),
    ) -> Steps[str | Refusal | None]:
        """The card to assign, None for a pod without cards, or why the pod cannot be lifted.

        `confined` is what the members before it leave of its choice, `within` the nodes to which they are led.
        """
        asked = entry.demand.card
        if asked is None or balance is None:
            return (yield from self._other_shortfall(entry, balance, within))
        if confined is None:
            return (yield from self._chosen(entry, asked, balance))
        narrowed = confined.narrowed(asked)
        if not narrowed.alternatives:
            return confined.excludes(balance.queue, asked.expression)
        card = yield from self._chosen(entry, narrowed, balance)
        if isinstance(card, str):
            return card
        if confined.by == "uniform":
            return confined.told(card) if len(narrowed.alternatives) < len(asked.alternatives) else card
        free = yield from self._chosen(entry, asked, balance)
        waits = confined.by == "single" and isinstance(free, str)
        return confined.exhausted(balance.queue, card) if waits else free

    def _chosen(self, entry: Entry, asked: CardAsk, balance: Balance) -> Steps[str | Refusal]:
        """One of the cards asked for, or why it is none."""
        shortfall = balance.cpu_memory_shortfall(entry.demand.cpu_memory) or balance.choice_shortfall(asked)
        if shortfall is not None:
            return shortfall
        card = yield from self._alternative(entry, asked, balance)
        if isinstance(card, Refusal):
            return card
        return (yield from self._other_shortfall(entry, balance, card=card)) or card

    def shortfall(
        self, balance: Balance | None, entry: Entry, card: str, within: tuple[str, ...] = ()
    ) -> Steps[Refusal | None]:
        """Why the pod cannot have this very card now, or one of the nodes `within`; '' for a pod without cards."""
        asked = entry.demand.card
        if asked is None or balance is None:
            return (yield from self._other_shortfall(entry, balance, within))
        short = balance.cpu_memory_shortfall(entry.demand.cpu_memory) or balance.card_shortfall(
            card, asked.milli
        )
        if short is None and len(asked.alternatives) == 1:
            short = yield from self._nowhere(balance.queue, entry.pod, card)
        elif short is None and not (yield from self._available(entry.pod, card, asked.milli)):
            short = _no_stock(balance.queue, card, asked.milli)
        return short or (yield from self._other_shortfall(entry, balance, card=card))

    def breaks_quota(self, balance: Balance | None, entry: Entry, assigned: Iterable[str]) -> bool:
        """Whether a pod that is lifted with these cards has no place any more in its queue, room on nodes aside."""
        demand = entry.demand
        if self._ledger.devices.overdrawn(entry.pod.uid, self._is_gated) is not None:
            return True
        if balance is None:
            return False
        rest, asked = balance.without(entry), demand.card
        shortfall = rest.share_shortfall(demand.shares)
        if demand.share_card:
            shortfall = shortfall or rest.card_shortfall(demand.share_card, demand.share_milli)
        if asked is not None:
            shortfall = shortfall or rest.cpu_memory_shortfall(demand.cpu_memory)
        cards = assigned if asked is not None else ()
        milli = asked.milli if asked is not None else 0
        return shortfall is not None or any(rest.card_shortfall(card, milli) for card in cards)

    def _is_gated(self, uid: str) -> bool:
        """Whether a pod carries our gate as the cluster has it, though it may be lifted in the books."""
        seen = self._ledger.observed(uid)
        return seen is not None and seen.gated

    def destination(self, entry: Entry, within: tuple[str, ...] = ()) -> Destination | None:
        """To which nodes the pod is to be led that was found last to have room; see ShareRoom."""
        if entry.demand.mgpu is None or self.share_pool(entry):
            return None
        return self._room.destination(entry, within)

    def share_pool(self, entry: Entry) -> str:
        """The card of the pool that may bring the shares of the pod, for which no node was found last; empty where one was."""
        return self._brought[1] if self._brought is not None and self._brought[0] == entry.pod.uid else ""

    def share_card(self, entry: Entry, card: str | None, within: tuple[str, ...] = ()) -> str:
        """Against which card the shares of a pod will count that was found last to have room; empty for none.

        It is the one of the node that was found, or the `card` that the pod gets beside its shares.
        """
        if not entry.demand.share_milli:
            return ""
        if card is not None:
            return whole_card(card)
        return self.share_pool(entry) or self._room.product(entry, within)

    def _alternative(self, entry: Entry, asked: CardAsk, balance: Balance) -> Steps[str | Refusal]:
        """The first alternative with quota and free cards.

        The choice among alternatives cannot be taken back once the gate is gone, so it waits for free cards; a pod
        with a single card does not, its waiting for a node is the scheduler's business. But nodes of the card there must be:
        the pod is narrowed to what they have in common. Or a pool of it, which has nodes as soon as pods wait for them.
        """
        pod, devices_short = entry.pod, None
        if BAR not in asked.expression:
            (card,) = asked.alternatives
            return (yield from self._nowhere(balance.queue, pod, card)) or card
        excluded = yield from self._excluded(pod, asked)
        if excluded:
            text = f"Queue <{balance.queue}>: the pod's node affinity excludes every node of <{asked.expression}>"
            return Refusal(reasons.AFFINITY_EXCLUDES_CARDS, text)
        for card in asked.alternatives:
            if balance.card_shortfall(card, asked.milli) is None and (
                yield from self._available(pod, card, asked.milli)
            ):
                short = self._devices_short(entry, card)
                if short is None:
                    return card
                devices_short = devices_short or short
        return devices_short or _no_stock(balance.queue, asked.expression, asked.milli)

    def _available(self, pod: Pod, card: str, milli: int) -> Steps[bool]:
        """Whether so much of the card is free, or a pool of it may bring it."""
        rules = pod.node_rules
        return (yield from self._stock.available(rules, card, milli)) or (
            yield from self._pools.may_bring(rules, card)
        )

    def _nowhere(self, queue: str, pod: Pod, card: str) -> Steps[Refusal | None]:
        """What is known of a card by `resources` or its name alone cannot keep a pod away from the nodes of other cards."""
        if self._ledger.inventory.nodes_with(card):
            return None
        if self._ledger.inventory.pool_of(card) is not None:
            if (yield from self._pools.may_bring(pod.node_rules, card)):
                return None
            text = f"Queue <{queue}>: the pod's node affinity excludes the node pool of <{card}>, and no node carries it"
            return Refusal(reasons.AFFINITY_EXCLUDES_CARDS, text)
        text = f"Queue <{queue}> has quota, but no node carries <{card}>"
        return Refusal(reasons.NO_FREE_CARD, text)

    def _excluded(self, pod: Pod, asked: CardAsk) -> Steps[bool]:
        """Whether there are nodes of the cards, and the pod's own rules admit none of them."""
        for card in asked.alternatives:
            if (yield from self._stock.admits_any(pod.node_rules, card)) or (
                yield from self._pools.may_bring(pod.node_rules, card)
            ):
                return False
        inventory = self._ledger.inventory
        return any(inventory.nodes_with(card) or inventory.pool_of(card) for card in asked.alternatives)

    def _devices_short(self, entry: Entry, card: str) -> Refusal | None:
        """Which limit of devices leaves no room for the pod's claims, and for this card of its choice where that is such a device.

        A claim that is away by now, since the pod was found to have no obstacle, costs nothing: it is what the pod waits for.
        """
        asked = entry.demand.card
        ask = Ask(card, asked.milli, asked.resource) if card and asked is not None else None
        devices = self._ledger.devices
        return devices.obstacle(entry.pod, entry.queue) or devices.excess(entry.pod, entry.queue, card=ask)

    def _other_shortfall(
        self, entry: Entry, balance: Balance | None, within: tuple[str, ...] = (), *, card: str = ""
    ) -> Steps[Refusal | None]:
        """Why the pod's mGPU shares and claims cannot be had now: the limits of queues first, then room on the nodes."""
        demand = entry.demand
        shortfall = balance.share_shortfall(demand.shares) if balance is not None else None
        shortfall = shortfall or self._devices_short(entry, card)
        if shortfall is None and demand.mgpu is not None:
            self._brought = None
            shortfall = yield from self._no_room(entry, demand.mgpu, balance, within, card)
            if shortfall is not None and not within and not card:
                shortfall = yield from self._unless_brought(entry, demand.mgpu, balance, shortfall)
        return shortfall

    def _unless_brought(
        self, entry: Entry, ask: MgpuAsk, balance: Balance | None, shortfall: Refusal
    ) -> Steps[Refusal | None]:
        """None where a pool may bring the shares that no node has room for."""
        pools, milli = self._ledger.inventory.share_pools, entry.demand.share_milli
        closed = [card for card in pools if milli and (balance is None or balance.card_room(card) < milli)]
        card = yield from self._pools.may_bring_shares(entry.pod.node_rules, ask, closed)
        if not card:
            return shortfall
        self._brought = entry.pod.uid, card
        return None

    def _no_room(
        self, entry: Entry, ask: MgpuAsk, balance: Balance | None, within: tuple[str, ...], card: str
    ) -> Steps[Refusal | None]:
        """Why no node has room for shares; where they count against cards, none with a card of which the queue has enough left.

        A pod with whole cards beside its shares goes where these are.
        """
        pod, milli = entry.pod, entry.demand.share_milli
        if not milli:
            return (yield from self._room.shortfall(pod, ask, entry.queue, within))
        if card and balance is not None:
            short = self._short_beside(entry, balance, card)
            return short or (yield from self._room.shortfall(pod, ask, entry.queue, within))
        products = self._ledger.inventory.shared_products()
        closed = frozenset(name for name in products if balance is None or balance.card_room(name) < milli)
        short = yield from self._room.shortfall(pod, ask, entry.queue, within, closed)
        if short is None or not closed:
            return short
        nowhere = yield from self._room.shortfall(pod, ask, entry.queue, within)
        if nowhere is not None:
            return nowhere
        if balance is None:
            return queue_missing(entry.queue)
        return balance.card_shortfall(self._room.product(entry, within), milli) or short

    def _short_beside(self, entry: Entry, balance: Balance, card: str) -> Refusal | None:
        product, asked = whole_card(card), entry.demand.card
        whole = asked.milli if asked is not None and product == card else 0
        return balance.card_shortfall(product, entry.demand.share_milli + whole)


def _no_stock(queue: str, cards: str, milli: int) -> Refusal:
    text = f"Queue <{queue}> has quota, but no node has {render_milli(milli)} of <{cards}> free"
    return Refusal(reasons.NO_FREE_CARD, text)
