"""The quota of a bind: what a pod is charged with once it is on its node, by the sums of its queue as they would be then.

A card pod that was lifted has its quota, and its record says for which card. Of any other pod everything is asked now that a
lift would have asked for.
"""

from dataclasses import replace

from core import names, reasons
from core.binding.extended import is_claimed
from core.cards.ask import CardAsk, assignment_of
from core.cards.assigned import NO_CARD, recorded_share, render_assigned, render_share, share_milli
from core.objects import Pod
from core.queues.amounts import Amounts
from core.queues.check import Balance, balance_of, chain_problem
from core.queues.demand import Demand, demand_of
from core.queues.ledger import Ledger
from core.queues.shortfall import queue_closed, queue_missing, uncountable
from core.queues.usage import card_resources
from core.refusal import Refusal
from core.settings import Settings
from core.stage import Stage


class BindQuota:
    """Asks the ledger, and changes nothing. Pods are given with the node that they are to be bound to."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self._ledger = ledger
        self._settings = settings

    def resource(self, pod: Pod) -> str:
        """The resource of the card that a pod is charged for; empty for one that names none, or that cannot be counted."""
        if not pod.card_name:
            return ""
        inventory = self._ledger.inventory
        asked = demand_of(pod, inventory, card_resources(inventory), self._settings).card
        return "" if asked is None else asked.resource

    def assigned(self, pod: Pod) -> str | Refusal:
        """The record of the cards of a pod, which is given with its node; or why it cannot have them there.

        The real card of a lifted pod is the recorded one while the node carries that, else another alternative that the
        node carries, if the queue has quota for it. On a node that shows no card at all the recorded one stays: it has
        been paid for, so no quota breaks, and labels that are missing for a moment hold up no pod. The ledger counts the
        pod in the same way from then on.
        """
        inventory = self._ledger.inventory
        demand = demand_of(pod, inventory, card_resources(inventory), self._settings)
        record, asked = lifted_for(pod), demand.card
        if record is None:
            return self._first_grant(pod, demand)
        if asked is None or asked.card == record:
            others = self.instead(pod, record, pod.node_name)
            if others:
                text = f"node {pod.node_name} carries <{others[0]}>, the pod was lifted for <{record}>"
                return Refusal(reasons.CARD_NOT_ON_NODE, text)
            return pod.annotations[names.ASSIGNED_ANNOTATION]
        balance = self._balance(pod)
        if isinstance(balance, Refusal):
            return balance
        short = chain_problem(self._ledger, balance.queue) or balance.card_shortfall(asked.card, asked.milli)
        if short is not None:
            lifted = f"the pod was lifted for <{record}>, and node {pod.node_name} carries <{asked.card}>"
            text = f"{short.message.removesuffix('.')}; {lifted}"
            return replace(short, message=text)
        return self._ledger.devices.exchanged(pod) or _record(asked)

    def instead(self, pod: Pod, card: str, node_name: str) -> list[str]:
        """The cards that a pod would get on a node instead of the one that it was lifted for; none where the node has that."""
        carried = self._ledger.inventory.on_node(node_name)
        if card in carried:
            return []
        return [other for other, stock in carried.items() if pod.requests.get(stock.resource)]

    def _first_grant(self, pod: Pod, demand: Demand) -> str | Refusal:
        """The record of a pod that nobody lifted: what a lift would have asked for is asked for now.

        Its placement was not narrowed to its card, so the node must carry it: else the pod would use a card of another
        name, whose quota nobody has looked at.
        """
        balance, asked = self._balance(pod), demand.card
        if isinstance(balance, Refusal):
            return balance
        queue = self._ledger.queues[balance.queue]
        if not queue.open:
            return queue_closed(queue)
        if asked is None or demand.problem:
            return uncountable(queue.name, demand.problem)
        if asked.card not in self._ledger.inventory.on_node(pod.node_name):
            text = f"node {pod.node_name} carries no <{asked.expression}>; the pod has never passed the quota gate"
            return Refusal(reasons.CARD_NOT_ON_NODE, text)
        return (
            chain_problem(self._ledger, queue.name)
            or balance.cpu_memory_shortfall(demand.cpu_memory)
            or balance.card_shortfall(asked.card, asked.milli)
            or balance.share_shortfall(demand.shares)
            or self._devices_shortfall(pod, queue.name)
            or _record(asked)
        )

    def first_charge(self, pod: Pod) -> Refusal | None:
        """The same of a pod without cards: why its queue has no room for its shares and devices; None when it has."""
        balance = self._balance(pod)
        if isinstance(balance, Refusal):
            # As at the gate: what nobody sent to a queue needs none.
            return balance if self._ledger.attribution(pod).named else None
        queue = self._ledger.queues[balance.queue]
        if not queue.open:
            return queue_closed(queue)
        inventory = self._ledger.inventory
        demand = demand_of(pod, inventory, card_resources(inventory), self._settings)
        if demand.problem:
            return uncountable(queue.name, demand.problem)
        broken = chain_problem(self._ledger, queue.name) if demand.shares else None
        return broken or balance.share_shortfall(demand.shares) or self._devices_shortfall(pod, queue.name)

    def share_card(self, pod: Pod) -> str | Refusal:
        """The record of the card that the shares of a pod count against, or why it cannot have them on its node.

        The one that a pod was lifted for stays while the node names no other one. Who was lifted for none, or before shares
        counted, pays for what the node names.
        """
        product, recorded = self._ledger.inventory.product_on(pod.node_name), recorded_share(pod)
        if recorded is not None and recorded[0]:
            if product is not None and product.name != recorded[0]:
                text = f"node {pod.node_name} carries <{product.name}>, the pod was lifted for shares of <{recorded[0]}>"
                return Refusal(reasons.CARD_NOT_ON_NODE, text)
            return pod.annotations[names.SHARE_CARD_ANNOTATION]
        if product is None:
            return NO_CARD
        balance = self._balance(pod)
        if isinstance(balance, Refusal):
            return balance
        inventory, milli = self._ledger.inventory, share_milli(pod)
        asked = demand_of(pod, inventory, card_resources(inventory), self._settings).card
        beside = asked.milli if asked is not None and asked.card == product.name else 0
        return (
            chain_problem(self._ledger, balance.queue)
            or balance.card_shortfall(product.name, milli + beside)
            or render_share(product.name, milli)
        )

    def _devices_shortfall(self, pod: Pod, queue: str) -> Refusal | None:
        devices = self._ledger.devices
        if not is_claimed(pod, self._ledger):
            # As it is charged once it runs there: its extended resources cost no device.
            pod = replace(pod, phase="Running")
        return devices.obstacle(pod, queue) or devices.excess(pod, queue, granted=True)

    def _balance(self, pod: Pod) -> Balance | Refusal:
        queue = self._ledger.attribution(pod).queue
        balance = balance_of(self._ledger, queue)
        if balance is None:
            return queue_missing(queue)
        return _without_unlifted(self._ledger, balance, pod)


def lifted_for(pod: Pod) -> str | None:
    """The card that a pod was lifted for; None for one that nobody lifted for any."""
    assignment = assignment_of(pod)
    return None if assignment is None else assignment[0]


def _without_unlifted(ledger: Ledger, balance: Balance, pod: Pod) -> Balance:
    """The balance as it is for the bind of `pod`: neither itself nor what was granted to nobody is used."""
    entry = ledger.entry(pod.uid)

    def unlifted(queue: str) -> tuple[Amounts, Amounts]:
        sums = ledger.sums(queue)
        return {**sums.unlifted, **ledger.devices.ungranted(queue)}, sums.unlifted_cpu_memory

    rest = balance.less(unlifted)
    if entry is not None and entry.stage is Stage.RESERVED and not entry.unlifted:
        return rest.without(entry)
    return rest


def _record(asked: CardAsk) -> str:
    return render_assigned(asked.card, asked.milli // 1000)
