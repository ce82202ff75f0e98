"""What is decided when a scheduler binds a pod: its mGPU cards, and the quota of a pod that was never lifted.

Where CrossQuota guards binds, so are pods without GPU on nodes with GPUs, whatever else they ask for.

A card pod that was lifted has its quota, and its record says for which card; its bind is only looked at for the real card
where it accepts several; nor is one that was lifted for shares or claims asked for quota again. For all others see
`quota`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from core import names, reasons
from core.binding.extended import claimed_shortfall
from core.binding.quota import BindQuota, lifted_for
from core.binding.shares import decide as place_shares
from core.binding.shares import lost as lost_shares
from core.binding.stand_ins import StandIns, before_the_bind, of_any_bind
from core.cards.expression import split
from core.crossquota.book import GuestBook
from core.crossquota.filter import bind_excess, guards_binds, is_limited
from core.mgpu import records
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.destination import task_of
from core.objects import Pod
from core.queues.demand import shares_count
from core.queues.ledger import Ledger
from core.queues.promises import on_the_way_to
from core.queues.queue_records import gang_record
from core.refusal import Refusal
from core.settings import Settings
from core.stage import Stage


class Binder:
    """Decides on one bind after the other, against both books as they are at that moment, and books what is granted.

    `observe` has to be told of every pod that changes. `cut_short` is called when a search for mGPU cards ended by its
    budget: better ones, or any at all, may exist.
    """

    def __init__(
        self, ledger: Ledger, guests: GuestBook, settings: Settings, cut_short: Callable[[], None]
    ) -> None:
        self._ledger = ledger
        self._guests = guests
        self._settings = settings
        self._quota = BindQuota(ledger, settings)
        self._guards = guards_binds(settings)
        self._names_needed = settings.features.cards and settings.cards.pods_without_card_name in (
            "deny",
            "infer",
        )
        self._cut_short = cut_short
        self._until_stored = StandIns(ledger, "lifted")
        self._inherited = StandIns(ledger, "inherited")

    def observe(self, old: Pod | None, new: Pod | None) -> None:
        """Follows the pods; None is one that is not there yet, or not any more."""
        if old is not None and (new is None or new.uid != old.uid):
            self._until_stored.release(old.uid)
        if new is not None and self._ledger.stages.of(new) in (Stage.ALLOCATED, Stage.IGNORED):
            self._until_stored.release(new.uid)

    def certain(self, pod: Pod, node_name: str) -> bool:
        """Whether the bind may go through as it is, so that not even the leader has to be asked.

        True for what `passes_unasked`, unless CrossQuota guards the node against the pod.
        """
        if self._guards and is_limited(pod, node_name, self._guests, self._settings):
            return False
        return self.passes_unasked(pod, node_name)

    def passes_unasked(self, pod: Pod, node_name: str) -> bool:
        """Whether the bind may go through when no leader can be asked.

        True for pods that ask for nothing of ours, and for lifted ones with the claims alone that were counted, or that stay with the card that
        they were lifted for: the queue is charged with it whatever else is under way, see `book`. CrossQuota is not asked:
        pods without GPU have to start whether we are there or not.
        """
        if self._unnamed_on(pod, node_name) is not None:
            return False
        if not self._asks(pod):
            return True
        if self._asks_shares(pod) or self._outsider(pod) is not None or self._has_other_claims(pod):
            return False
        if not self._asks_cards(pod):
            return pod.let_in
        card, carried = lifted_for(pod), self._ledger.inventory.on_node(node_name)
        return card is not None and (
            card in carried
            or (len(split(pod.card_name)) == 1 and not self._quota.instead(pod, card, node_name))
        )

    def contested(self, pod: Pod) -> bool:
        """Whether its bind to whatever node may take cards, devices or quota that the pod did not have before."""
        if self._asks_shares(pod) or self._is_charged_at_the_bind(pod):
            return True
        return self._asks_cards(pod) and (lifted_for(pod) is None or len(split(pod.card_name)) > 1)

    def hold_outcomes(self, pod: Pod) -> None:
        """Charges for a pod all that a bind of it may take which a former leader may have granted, until that is released."""
        if self._outsider(pod) is None:
            self._inherited.hold(pod.uid, of_any_bind(pod, self._ledger))

    def release_outcomes(self, uid: str) -> None:
        """Takes that back. Unknown UIDs are fine."""
        self._inherited.release(uid)

    def release_all_outcomes(self) -> None:
        """The same for all pods; many stay charged until the ledger is settled."""
        self._inherited.release_all()

    def decide(self, pod: Pod, node_name: str) -> Mapping[str, str] | Refusal:
        """The records that the Binding must carry, or why the pod must not be bound to this node.

        Not for a pod that is `certain`, nor for one that was granted a bind which may still be stored, see `decide_again`. That it
        exists, is unbound, ungated and the one meant has been checked by the caller. What is held for binds that a former leader
        may have granted is in the way of others alone: one of them is stored.
        """
        with self._inherited.aside(pod.uid):
            return self._decided(pod, node_name)

    def _decided(self, pod: Pod, node_name: str) -> Mapping[str, str] | Refusal:
        found, ask = self._charge(pod, node_name), self._shares(pod)
        if isinstance(found, Refusal) or ask is None:
            return found
        on_the_way = on_the_way_to(self._ledger, node_name, pod.uid, task_of(pod))
        node, on_node = self._ledger.nodes[node_name], self._ledger.pods_on(node_name)
        answer = place_shares(pod, ask, node, on_node, self._settings, on_the_way)
        if answer.cut_short:
            self._cut_short()
        if isinstance(answer, Refusal):
            return replace(answer, message=f"{answer.message} (node {node_name})")
        self._ledger.keep_places(node_name, answer.places)
        return {**found, **answer.annotations}

    def decide_again(self, pod: Pod, granted: Pod, node_name: str) -> Mapping[str, str] | Refusal:
        """The same for a pod that was granted a bind, to this node or another one, while that may still be stored.

        Either bind may be stored in the end, so it is granted by the records of the first one or not at all. Its queue is charged
        by them: it is judged as a pod that was lifted with them, whatever became of the quota since.
        """
        kept = self.records_of(granted)
        again = replace(pod, node_name=node_name, annotations={**pod.annotations, **kept})
        card, moves = lifted_for(again), node_name != granted.node_name
        if moves and self._asks_shares(again):
            return _under_way(granted, "its mGPU cards are cards of that node")
        if card not in (None, lifted_for(pod), *self._ledger.inventory.on_node(node_name)):
            return _under_way(granted, f"node {node_name} carries no <{card}>")
        found = self._charge(again, node_name)
        if isinstance(found, Refusal):
            return found
        if not found.items() <= kept.items():
            return _under_way(granted, "by now the records would be others")
        # Who was lifted has been asked for all devices that a scheduler may come to make a claim for.
        short = None if pod.let_in else claimed_shortfall(again, self._ledger)
        node, on_node = self._ledger.nodes[node_name], self._ledger.pods_on(node_name)
        return short or lost_shares(again, self._shares(again), node, on_node, self._settings) or kept

    def _charge(self, pod: Pod, node_name: str) -> dict[str, str] | Refusal:
        """The records of what a pod is charged with on a node, and why it cannot be; all but which mGPU cards it gets."""
        if node_name not in self._ledger.nodes:
            return Refusal(reasons.NODE_NOT_FOUND, f"node {node_name} does not exist")
        over = bind_excess(pod, node_name, self._guests, self._settings)
        if over is not None:
            return replace(over, message=f"{over.message} (node {node_name})")
        outsider = self._outsider(pod) or self._unnamed_on(pod, node_name)
        if outsider is not None:
            return outsider
        found: dict[str, str] = {}
        if self._asks(pod):
            found[names.CHARGED_QUEUE_ANNOTATION] = self._ledger.attribution(pod).queue
            found |= gang_record(pod)
        bound = replace(pod, node_name=node_name)
        if self._has_other_claims(pod):
            short = self._other_claims_shortfall(pod, found[names.CHARGED_QUEUE_ANNOTATION])
            if short is not None:
                return short
        if pod.claims and self._is_charged_at_the_bind(pod):
            found[names.CLAIMS_ANNOTATION] = self._ledger.devices.record(pod)
        if self._asks_cards(pod):
            assigned = self._quota.assigned(bound)
            if isinstance(assigned, Refusal):
                return assigned
            found[names.ASSIGNED_ANNOTATION] = assigned
        elif self._asks(pod) and not pod.let_in:
            short = self._quota.first_charge(bound)
            if short is not None:
                return short
        if shares_count(pod, self._settings):
            share_card = self._quota.share_card(bound)
            if isinstance(share_card, Refusal):
                return share_card
            found[names.SHARE_CARD_ANNOTATION] = share_card
        return found

    def _shares(self, pod: Pod) -> MgpuAsk | Refusal | None:
        return mgpu_ask(pod) if self._settings.features.mgpu else None

    def records_of(self, granted: Pod) -> dict[str, str]:
        """The records with which a pod was granted its bind."""
        return {
            key: value
            for key, value in granted.annotations.items()
            if records.is_result(key)
            or key
            in (
                names.CHARGED_QUEUE_ANNOTATION,
                names.GANG_OF_ANNOTATION,
                names.CLAIMS_ANNOTATION,
                names.SHARE_CARD_ANNOTATION,
            )
            or (key == names.ASSIGNED_ANNOTATION and self._asks_cards(granted))
        }

    def book(self, pod: Pod, node_name: str, found: Mapping[str, str]) -> Pod:
        """Books the bind as it will be once it is stored, and returns the pod as it will be then.

        A pod that was lifted for one card, or with some claims, and gets others is charged with both until the watch shows it:
        should the bind fail, it is back at the first ones, which must not have been given away.
        """
        bound = replace(pod, node_name=node_name, annotations={**pod.annotations, **found})
        if self._guards:
            self._guests.grant(bound)
        if not self._asks(pod):
            # Its queue is charged once the watch shows the bind: nobody keeps such pods back.
            return bound
        self._until_stored.hold(pod.uid, before_the_bind(pod, bound, self._ledger))
        self._ledger.assume(bound)
        return bound

    def confirm(self, stored: Pod) -> None:
        """Books a bind as it was found stored, in the place of what was granted, until the watch shows the pod."""
        self._guests.take_back(stored.uid)
        if self._guards and not stored.terminal:
            self._guests.grant(stored)
        if self._asks(stored):
            self._ledger.assume(stored)
        self._until_stored.release(stored.uid)

    def take_back(self, uid: str) -> None:
        """Takes a booking back: nobody believes any more that the bind will be stored."""
        self._ledger.forget(uid)
        self._guests.take_back(uid)
        self._until_stored.release(uid)

    def take_back_all(self, booked: Iterable[Pod]) -> None:
        """The same of all that is booked, which is these pods; many stay in the ledger until it is settled."""
        pods = tuple(booked)
        self._ledger.retract_all(pods)
        for pod in pods if self._guards else ():
            self._guests.take_back(pod.uid)
        self._until_stored.release_all()

    def _asks(self, pod: Pod) -> bool:
        return self._asks_cards(pod) or self._asks_shares(pod) or self._asks_devices(pod)

    def _asks_cards(self, pod: Pod) -> bool:
        return bool(pod.card_name) and self._settings.features.cards

    def _asks_shares(self, pod: Pod) -> bool:
        return pod.asks_mgpu and self._settings.features.mgpu

    def _outsider(self, pod: Pod) -> Refusal | None:
        """Why a pod that nobody let in may not use its queue; None for every pod that was let in, and that asks for nothing."""
        if pod.let_in or not self._asks(pod):
            return None
        return self._ledger.access.refusal(self._ledger.attribution(pod).queue, pod.namespace)

    def _unnamed_on(self, pod: Pod, node_name: str) -> Refusal | None:
        """Why a pod may not use cards of a node that it does not name, where no card may be used without a name.

        When it was created nobody knew that its resource stands for a card. The one that it is charged for has a name.
        """
        if not self._names_needed:
            return None
        carried = self._ledger.inventory.on_node(node_name)
        named = self._quota.resource(replace(pod, node_name=node_name))
        unnamed = [
            card
            for card, stock in carried.items()
            if pod.requests.get(stock.resource) and stock.resource != named
        ]
        if not unnamed:
            return None
        text = f"node {node_name} carries <{unnamed[0]}>, and the pod asks for it without a card name"
        return Refusal(reasons.CARD_NAME_MISSING, text)

    def _asks_devices(self, pod: Pod) -> bool:
        return self._settings.features.dra and self._ledger.devices.wanted(pod)

    def _is_charged_at_the_bind(self, pod: Pod) -> bool:
        """Whether its devices, or some of them, were not asked for at a lift."""
        return self._asks_devices(pod) and (not pod.let_in or self._has_other_claims(pod))

    def _has_other_claims(self, pod: Pod) -> bool:
        """Whether a lifted pod refers to claims that were not counted: made since, made anew under a name, or not in view.

        Of what versions before have lifted nobody knows.
        """
        return self._asks_devices(pod) and not self._ledger.devices.all_counted(pod)

    def _other_claims_shortfall(self, pod: Pod, queue: str) -> Refusal | None:
        """Why such a pod cannot have its claims: until its bind is granted it is charged with those that were counted."""
        devices = self._ledger.devices
        anew = replace(pod, annotations={**pod.annotations, names.CLAIMS_ANNOTATION: devices.record(pod)})
        return devices.unresolved(pod) or devices.obstacle(anew, queue) or devices.exchanged(anew)


def _under_way(granted: Pod, why: str) -> Refusal:
    text = f"a bind of pod {granted.key} to node {granted.node_name} is under way, and {why}"
    return Refusal(reasons.POD_ALREADY_BOUND, text)
