"""The device quota of all queues as a part of the ledger: what its changes touch and wake, and its figures by name."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from core import names, reasons
from core.cards.inventory import Inventory
from core.dra.alone import DevicesAlone
from core.dra.amounts import Amounts, DeviceKey, thousandths, total
from core.dra.book import DeviceBook
from core.dra.booking import NO_EFFECT, Effect
from core.dra.carriers import NO_LIMITS, DeviceLimits
from core.dra.links import Ask, Links, is_implicit
from core.dra.record import render_counted
from core.dra.status import published, shown
from core.dra.wants import all_counted, claim_keys, late_record_of, record_of, unclaimed, unresolved
from core.hierarchy import QueueTree
from core.objects import Claim, ClaimTemplate, DeviceClass, Pod, Queue
from core.queues.breaks import Breaks
from core.queues.limits import Limits
from core.queues.linked_cards import LinkedCards
from core.queues.overuse import Overuse
from core.refusal import Refusal
from core.settings import Settings
from core.stage import Stage
from core.steps import Pace, Steps

_ASKED_IN_A_STEP: Final = 100
"""Pods and claims of theirs that are looked at in half a millisecond."""


class Devices:
    """The books of claims; empty while the feature is off. `changed` is told what each change has done, `tree` is kept by others.

    Where the API server does not serve claims at all (`serve`), nobody waits for any.
    """

    def __init__(
        self,
        settings: Settings,
        tree: QueueTree,
        changed: Callable[[Effect], None],
        inventory: Inventory,
        card_limits: Mapping[str, Limits],
    ) -> None:
        on = settings.features.dra and settings.features.cards
        links = Links(settings.cards.equivalents if on else {})
        cards = LinkedCards(links.classes, inventory, card_limits, settings)
        through = settings.cards.hierarchy
        self.book = DeviceBook(settings.dra, tree, links, cards, through=through)
        self._card_limits = card_limits
        self._tree = tree if settings.dra.hierarchy else None
        self._on = settings.features.dra
        self._served = True
        self._changed = changed
        self.breaks = Breaks()

    def serve(self, served: bool) -> None:
        """Takes note of whether claims exist as a kind."""
        if served != self._served:
            self._served = served
            self._changed(Effect(dirty=self.book.accounts.waiting_queues()))

    def put_pod(self, pod: Pod, stage: Stage, queue: str) -> None:
        """Books a pod anew."""
        effect = self.book.put_pod(pod, stage, queue) if self._on else NO_EFFECT
        if effect is not NO_EFFECT:
            self._changed(effect)

    def is_behind(self, uid: str) -> bool:
        """Whether a pod is to be put again, as it is, for a claim or something like that has changed."""
        return uid in self.book.behind

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod; unknown UIDs are fine."""
        if self._on:
            self._changed(self.book.drop_pod(uid))

    def put_queue(self, queue: Queue, *, moved: bool) -> None:
        """Takes in a queue; `moved`: that it has another parent in the tree now."""
        if self._on:
            self._changed(self.book.put_queue(queue, moved=moved))

    def drop_queue(self, name: str) -> None:
        """Takes out a queue, which has gone from the tree."""
        if self._on:
            self._changed(self.book.drop_queue(name))

    def put_claim(self, claim: Claim) -> None:
        """Takes in a claim; its pods are counted anew."""
        if self._on:
            self._of_claim(claim.key, claim.uid, partial(self.book.put_claim, claim))

    def drop_claim(self, key: str) -> None:
        """Takes out a claim, `namespace/name`."""
        if self._on:
            self._of_claim(key, "", partial(self.book.drop_claim, key))

    def put_template(self, template: ClaimTemplate) -> None:
        """Takes in a template; pods whose claims are not made yet are counted anew."""
        if self._on:
            self._of_template(template.key, partial(self.book.put_template, template))

    def drop_template(self, key: str) -> None:
        """Takes out a template, `namespace/name`."""
        if self._on:
            self._of_template(key, partial(self.book.drop_template, key))

    def _of_claim(self, key: str, uid: str, change: Callable[[], Effect]) -> None:
        pods = len(self.book.with_claim(key))
        self.breaks.come(f"claim {key}", uid, pods, lambda: self._changed(change()))

    def _of_template(self, key: str, change: Callable[[], Effect]) -> None:
        pods = len(self.book.with_template(key))
        self.breaks.come(f"template {key}", "", pods, lambda: self._changed(change()))

    def awaits(self, claim: str) -> bool:
        """Whether a claim, `namespace/name`, is not any more what the books say: that is taken in after the break."""
        return f"claim {claim}" in self.breaks

    def awaited(self, pod: Pod) -> Collection[str]:
        """The claims of a pod of which that is so."""
        return [key for key in claim_keys(pod) if self.awaits(key)] if self.breaks else ()

    def certain(self, pod: Pod) -> bool:
        """Whether the books know all claims that a pod would be bound with; one that was let in was asked for them, given out or not."""
        return all(pod.let_in and self._is_known_as(key) for key in self.awaited(pod))

    def _is_known_as(self, claim: str) -> bool:
        """Whether a claim of which a change is kept is still the same object."""
        found = self.book.source.claim(claim)
        return found is not None and found[0].uid == self.breaks.uid(f"claim {claim}")

    def put_class(self, device_class: DeviceClass) -> None:
        """Takes in a DeviceClass; pods with extended resources that it serves are counted anew."""
        if self._on:
            self._changed(self.book.put_class(device_class))

    def drop_class(self, name: str) -> None:
        """Takes out a DeviceClass."""
        if self._on:
            self._changed(self.book.drop_class(name))

    def release_resource(self, resource: str) -> None:
        """Has an extended resource cost nothing any more that no DeviceClass serves."""
        if self._on:
            self._changed(self.book.release_resource(resource))

    def tell_again(self, uids: Iterable[str]) -> None:
        """Says once more what booking these pods has done, for a caller that has put its marks back since."""
        for uid in uids:
            self._changed(self.book.effect_of(uid))

    def with_claim(self, key: str) -> Collection[str]:
        """The UIDs of the pods that refer to a claim, `namespace/name`; live."""
        return self.book.with_claim(key)

    def wanted(self, pod: Pod) -> bool:
        """Whether a pod has claims, or a DeviceClass serves extended resources that it asks for."""
        return self._on and self.book.wanted(pod)

    def concerns(self, pod: Pod) -> bool:
        """Whether a pod has something here: that, or a card that is the same devices as a DeviceClass."""
        return self._on and self.book.concerns(pod)

    @property
    def linked(self) -> Collection[str]:
        """The cards that are the same devices as some DeviceClass: what is used of them stands here."""
        return self.book.links.classes.keys()

    def card_used(self, queue: str, card: str) -> int:
        """What is allocated and reserved of such a card, in thousandths, by its name and by claims."""
        return self.book.accounts.card_used(queue, card)

    def ungranted(self, queue: str) -> Mapping[str, int]:
        """The part of that which was granted to nobody, by card."""
        return self.book.accounts.ungranted(queue) if self.book.links else {}

    def counted(self, pod: Pod) -> Mapping[str, int]:
        """How many devices the claims of a pod are, by the names in resource lists, in thousandths.

        Those that several pods share are told of each; those that stand for the card which the pod names are left out.
        """
        claims = self.book.claims_of(pod) if self._on else {}
        if not claims:
            return {}
        own = (cost for key, cost in claims.items() if not (pod.card_name and is_implicit(key, pod)))
        found = {key: n for key, n in total(own).items() if n and key.device_class and not key.dimension}
        return thousandths(found)

    def unclaimed(self, pod: Pod) -> Collection[str]:
        """The extended resources of a pod that a DeviceClass serves, and for which it is charged without a claim."""
        return unclaimed(pod, self.book.source) if self._on else ()

    def records(self, pod: Pod) -> dict[str, str]:
        """The records of a lift about the claims of a pod, as it waits; none for one that has no claims."""
        return {names.CLAIMS_ANNOTATION: self.record(pod)} if pod.claims else {}

    def record(self, pod: Pod) -> str:
        """What the lift or the bind of a pod with claims puts on record about them: nothing counts while the feature is off."""
        return record_of(pod, self.book.source) if self._on else render_counted({})

    def late_record(self, pod: Pod) -> str:
        """The same for a pod that runs with claims which nobody has put on record; empty where there are none, or where one is awaited."""
        return late_record_of(pod, self.book.source) if self._on and not self.awaited(pod) else ""

    def all_counted(self, pod: Pod) -> bool:
        """Whether the claims of a pod that was let in are those on its record; those of earlier versions are."""
        return not self._on or (self.certain(pod) and all_counted(pod, self.book.source))

    def unresolved(self, pod: Pod) -> Refusal | None:
        """Which claim of a pod with a record is not known, so that nobody can tell what its bind takes."""
        text = unresolved(pod, self.book.source) if self._on and self._served else ""
        return Refusal(reasons.CLAIM_NOT_FOUND, text) if text else None

    # -- what decisions ask ----------------------------------------------------------------------------------

    def obstacle(self, pod: Pod, queue: str) -> Refusal | None:
        """Why the claims of a pod could not be let in however much were left."""
        return self.book.obstacle(pod, queue) if self._on and self._served else None

    def excess(
        self, pod: Pod, queue: str, *, granted: bool = False, card: Ask | None = None
    ) -> Refusal | None:
        """Which limit the claims of a pod without an obstacle would break now; `granted` and `card` as in DeviceBook.excess."""
        if not (self._on and self._served):
            return None
        return self.book.excess(pod, queue, granted=granted, card=card)

    def overdrawn(self, uid: str, unwritten: Callable[[str], bool]) -> Refusal | None:
        """Which limit the claims of a pod that does not wait any more are beyond; `unwritten` as in DeviceBook.overdrawn."""
        return self.book.overdrawn(uid, unwritten) if self._on and self._served else None

    def exchanged(self, pod: Pod) -> Refusal | None:
        """Which limit the claims of a pod with this record would break, that was let in with another one."""
        return self.book.exchanged(pod) if self._on and self._served else None

    def alone(self) -> DevicesAlone | None:
        """What the queues would have for a few pods, were all others gone; None where nobody waits for claims."""
        return self.book.alone() if self._on and self._served else None

    def kind(self, pod: Pod) -> Hashable:
        """What decides about the claims of a pod; those of an equal kind are interchangeable."""
        return self.book.kind(pod) if self._on else ()

    def to_ask(self, pod: Pod, queue: str, level: str) -> Mapping[str, Amounts]:
        """The claims for which a waiting pod has to be asked for quota of a level, see DeviceBook.to_ask."""
        return self.book.to_ask(pod, queue, level) if self._on else {}

    def asked(self, pods: Iterable[Pod], queue: str, level: str) -> Iterator[Mapping[str, int]]:
        """What each of these waiting pods asks of a level after those before it, by the names in resource lists, in thousandths.

        A claim that several of them share is told of the first one.
        """
        seen = set[str]()
        for pod in pods:
            claims = self.to_ask(pod, queue, level)
            yield thousandths(total(cost for claim, cost in claims.items() if claim not in seen))
            seen.update(claims)

    def asked_anew(self, pods: Iterable[Pod], queue: str, level: str) -> Steps[Mapping[str, int]]:
        """The part of that with which the level is charged already: for others, for whose claims nobody asked."""
        charged: dict[str, Amounts] = {}
        pace = Pace(_ASKED_IN_A_STEP)
        for pod in pods if self._on else ():
            claims = self.to_ask(pod, queue, level)
            if pace.due(1 + len(claims)):
                yield
            used = self.book.accounts.of(level).used
            charged.update((claim, cost) for claim, cost in claims.items() if claim in used)
        found: dict[DeviceKey, int] = {}
        for cost in charged.values():
            if pace.due():
                yield
            found = total((found, cost))
        return thousandths(found)

    def levels(self, queue: str) -> Sequence[str]:
        """The queue, and the queues above it whose device quotas hold for it."""
        return self._tree.chain(queue).queues if self._tree is not None else (queue,)

    # -- figures by the names in resource lists, in thousandths, rounded up -------------------------------------

    def quota(self, queue: str) -> Mapping[str, int]:
        """The limits of the queue itself."""
        limits = self.book.limits.get(queue)
        return thousandths(limits.bounds) if limits is not None else {}

    def allocated(self, queue: str) -> Mapping[str, int]:
        """What the bound pods of the queue and of those below it use."""
        return thousandths(self.book.accounts.allocated(queue))

    def reserved(self, queue: str) -> Mapping[str, int]:
        """What their pods hold that may be bound any moment."""
        return thousandths(self.book.accounts.reserved(queue))

    def waiting(self, queue: str) -> Mapping[str, int]:
        """What their gated pods wait for."""
        return thousandths(self.book.accounts.waiting(queue))

    def over(self, queue: str) -> tuple[Overuse, ...]:
        """What the queue and those below it use beyond its own limits, allocated and reserved."""
        quota, used = self.quota(queue), thousandths(self.book.accounts.used(queue))
        limits = self._card_limits.get(queue)
        if limits is not None and not limits.malformed:
            quota = {**quota, **{card: limits.cards.get(card, 0) for card in self.linked if card in used}}
        beyond = (Overuse(key, used.get(key, 0), limit) for key, limit in sorted(quota.items()))
        return tuple(one for one in beyond if one.used > one.quota)

    def published(self, queue: Queue) -> Mapping[str, str]:
        """The keys of `status.allocated` that we answer for, as texts."""
        allocated = self.book.accounts.allocated(queue.name)
        return published(queue, allocated, self._limits(queue.name), self._is_known)

    def shown(self, queue: str, amounts: Amounts) -> Amounts:
        """What others than the status are shown of what a queue uses: by the same rule, core.dra.status."""
        return shown(amounts, self._limits(queue), self._is_known)

    def _limits(self, queue: str) -> Sequence[DeviceLimits]:
        """Those of the queue and of the queues above it, from the queue up."""
        return [self.book.limits.get(level, NO_LIMITS) for level in self.levels(queue)]

    def _is_known(self, device_class: str) -> bool:
        """Whether a DeviceClass exists, or the settings name it."""
        return device_class in self.book.classes or self.book.links.names_class(device_class)

    def malformed(self, queue: str) -> str:
        """What of the device quota of the queue cannot be read; empty when all can."""
        limits = self.book.limits.get(queue)
        return limits.malformed if limits is not None else ""
