"""Who uses which devices: the claims of every pod, charged to its queue and to all queues above it.

The book follows API objects one change at a time, in whatever order they come, and its sums are always those that the
objects known now add up to, but for pods that are `behind`. A change costs as much as the pods that it touches.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from core import reasons
from core.dra.alone import DevicesAlone
from core.dra.amounts import Amounts, total
from core.dra.behind import Behind
from core.dra.booking import NO_EFFECT, Booking, Effect, held, kind_of
from core.dra.bookings import Bookings
from core.dra.extended import Candidates
from core.dra.links import Ask, Asked, CardQuotas, Links
from core.dra.quotas import DeviceQuotas
from core.dra.wants import ClaimSource, Wants, references
from core.hierarchy import Chain, QueueTree
from core.objects import Claim, ClaimTemplate, DeviceClass, Pod, Queue
from core.refusal import Refusal, first_above
from core.settings import DraSettings
from core.stage import Stage

_NO_LINKS: Final = Links({})


class DeviceBook:
    """The books of all queues. Not safe for use from several threads.

    Every change returns its effect. `accounts` have the figures; the sums that are handed out follow later changes, and whoever keeps
    them copies them. `limits` are read by the name of the queue.
    """

    def __init__(
        self,
        settings: DraSettings,
        tree: QueueTree | None = None,
        links: Links = _NO_LINKS,
        cards: CardQuotas | None = None,
        *,
        through: bool = False,
    ) -> None:
        """`tree` where somebody else keeps it, who then says with `put_queue` and `drop_queue` that it has changed.

        `links` say which cards are the same devices as which classes, `cards` knows of those, and `through` whether their quotas hold
        through the tree.
        """
        self.links = links if cards is not None else _NO_LINKS
        self._quotas = DeviceQuotas(settings, self.links, cards, through=through)
        self.limits = self._quotas.limits
        self._bookings = Bookings(self._quotas, linked=bool(self.links))
        self.accounts = self._bookings.accounts
        self.with_claim, self.with_template = self._bookings.with_claim, self._bookings.with_template
        self._tree = QueueTree() if tree is None else tree
        self._keeps_tree = tree is None
        self._asked = Asked(settings, self.links, cards)
        self._known = self._asked.known
        self.source: ClaimSource = self._known
        self.classes = self._known.classes
        self.follower: Callable[[str], None] | None = None
        """Is told the UID of each pod that claims, templates or classes have been counted anew for."""
        self.behind = Behind()
        self._candidates = Candidates()

    # -- what others read ------------------------------------------------------------------------------------

    def holders(self, queue: str) -> Iterator[tuple[Pod, Amounts]]:
        """The pods of a queue and of those below it that are bound, or may be any moment, and what the claims of each cost.

        A claim that several pods share is told of each of them, and of all other pods nothing: the book may change meanwhile.
        """
        for booking in tuple(self._bookings):
            holds = queue in booking.chain.queues and booking.stage in (Stage.ALLOCATED, Stage.RESERVED)
            yield booking.pod, total(booking.wants.claims.values()) if holds else {}

    def claims_of(self, pod: Pod) -> Mapping[str, Amounts]:
        """The claims of a pod and what each costs, whether others hold them too or not; with what its card stands for."""
        return self._wants(pod).claims if self.concerns(pod) else {}

    def asked(self, pod: Pod) -> Amounts:
        """What the claims of a pod cost, whether others hold them too or not."""
        return total(self.claims_of(pod).values())

    def to_ask(self, pod: Pod, queue: str, level: str) -> Mapping[str, Amounts]:
        """The claims for which a pod that waits in a queue has to be asked for quota of this or one above it, see `excess`."""
        return self._to_ask(self.claims_of(pod), queue, level)

    def share(self, queue: str) -> float:
        """The largest part of any limit of the queue that is used; for order and display only."""
        return self._quotas.share(queue, self.accounts.used(queue))

    def kind(self, pod: Pod) -> Hashable:
        """What decides about the claims of a pod; two pods of one kind may take each other's place."""
        return kind_of(pod, self.claims_of(pod))

    def wanted(self, pod: Pod) -> bool:
        """Whether a pod has claims or, as far as the DeviceClasses tell, will have some."""
        if pod.claims or not self._known.classes:
            return bool(pod.claims)
        if not self.links:
            return bool(self._wants(pod).claims)
        # What a booking has may be of its card.
        return bool(pod.extended) and bool(self._asked.by_claims(pod).claims)

    def concerns(self, pod: Pod) -> bool:
        """Whether a pod is in the book: it has claims, or a card that has classes."""
        return self.wanted(pod) or self._asked.names_linked(pod)

    def effect_of(self, uid: str) -> Effect:
        """What the booking of a pod that does not wait has done to others."""
        if (booking := self._bookings.get(uid)) is None:
            return NO_EFFECT
        return Effect(frozenset(booking.chain.queues), frozenset(self._bookings.sharing(held([booking]))))

    def excess(
        self, pod: Pod, queue: str, *, granted: bool = False, card: Ask | None = None
    ) -> Refusal | None:
        """Which limit the claims of a waiting pod would break; of one with an obstacle, as far as they can be counted.

        A claim for which another pod of the queue was asked costs nothing more. Any other is asked for in full, also where it is
        charged for a pod that came past the gate. With `granted` nothing is charged but what is bound or was let in: for the bind
        of a pod that was not. `card` is the one that a pod would get which has the choice.
        """
        if not self.concerns(pod):
            return None
        chain, wants = self._standing(pod, queue)
        claims = wants.claims
        if card is not None and self.links:
            claims = self._asked.with_card(pod, card)

        def short_in(name: str) -> Refusal | None:
            account = self.accounts.of(name)
            charged = account.granted if granted else account.used
            asked = self._to_ask(claims, queue, name)
            beside = charged.without(asked)
            return self._quotas.beyond(name, total(asked.values()), beside, own=name == queue)

        return short_in(queue) or first_above(queue, map(short_in, chain.queues[1:]))

    def overdrawn(self, uid: str, unwritten: Callable[[str], bool]) -> Refusal | None:
        """Which limit leaves no room for the claims that a lifted pod has alone, or shares with others whose lifts are `unwritten`."""
        booking = self._bookings.get(uid)
        if booking is None:
            return None
        charges = {name: self.accounts.of(name).used for name in booking.chain.queues}
        claims = booking.wants.claims
        free = self._bookings.paid_by_others(booking, unwritten)
        # Almost always there is room for all, and nobody has to look at the others.
        refusal = self._quotas.beyond_instead(booking, claims, charges, lambda _name, _claim: False)
        return refusal and self._quotas.beyond_instead(booking, claims, charges, free)

    def exchanged(self, pod: Pod) -> Refusal | None:
        """Which limit leaves no room for the claims of a pod that was let in with others, and that gives those back.

        Only what is bound or was let in counts, as for the bind of any pod that nobody asked before.
        """
        if (booking := self._bookings.get(pod.uid)) is None:
            return None
        charges = {name: self.accounts.of(name).granted for name in booking.chain.queues}
        free = self._bookings.paid_by_others(booking)
        return self._quotas.beyond_instead(booking, self._wants(pod).claims, charges, free)

    def obstacle(self, pod: Pod, queue: str) -> Refusal | None:
        """Why the claims of a waiting pod cannot be let into a queue however much is left; None when they can."""
        if not self.wanted(pod):
            return None
        chain, wants = self._standing(pod, queue)
        if chain.problem:
            return Refusal(reasons.QUEUE_HIERARCHY_BROKEN, chain.told)
        why = wants.why
        return None if why is None else replace(why, message=f"queue {queue}: {why.message}")

    def alone(self) -> DevicesAlone:
        """What the queues would have for a few pods, were all others gone."""
        return DevicesAlone(self._quotas, self._bookings, self._known)

    # -- what an audit asks ------------------------------------------------------------------------------------

    def bookings(self) -> tuple[Booking, ...]:
        """Everything in the book. Bookings never change, so they may be added up later."""
        return tuple(self._bookings)

    def booked(self, uid: str) -> Booking | None:
        """What the book has of a pod."""
        return self._bookings.get(uid)

    def counted_anew(self, pod: Pod, stage: Stage, queue: str) -> Booking:
        """What it should have of a pod by what is known now; without claims it need not be in the book."""
        return Booking(pod, stage, queue, self._chain(queue), self._asked.by(pod))

    def at(self, name: str, booking: Booking) -> Mapping[str, Amounts]:
        """What of the claims of a booking is charged to a queue of its chain."""
        return self._bookings.at(name, booking)

    # -- pods ------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod, stage: Stage, queue: str) -> Effect:
        """Books a pod anew; `stage` may be one that is only tried, to be put back by another call."""
        effect = self._put(pod, stage, queue)
        if not self.behind.drop(pod.uid):
            return effect
        self._tell((pod,))
        # What it was told meanwhile may not be so any more.
        return replace(effect, dirty=effect.dirty.union((queue,) if stage is Stage.WAITING else ()))

    def _put(self, pod: Pod, stage: Stage, queue: str) -> Effect:
        served = self._candidates.put(pod, stage, queue) and bool(self._known.classes)
        linked = self._asked.names_linked(pod)
        if not (pod.claims or served or linked) or stage is Stage.IGNORED:
            return self._unbooked(pod.uid) if pod.uid in self._bookings else NO_EFFECT
        old = self._bookings.get(pod.uid)
        new = Booking(pod, stage, queue, *self._standing(pod, queue))
        return NO_EFFECT if new == old else self._bookings.replace([] if old is None else [old], [new])

    def drop_pod(self, uid: str) -> Effect:
        """Takes out a pod; unknown UIDs are fine."""
        self._candidates.drop(uid)
        self.behind.drop(uid)
        return self._unbooked(uid)

    def _unbooked(self, uid: str) -> Effect:
        old = self._bookings.get(uid)
        return NO_EFFECT if old is None else self._bookings.replace([old], [])

    # -- what pods depend on ---------------------------------------------------------------------------------

    def put_claim(self, claim: Claim) -> Effect:
        """Takes in a claim; every pod that refers to it is counted anew, as are those of all that follows here, see `behind`."""
        return self._anew(self.with_claim(claim.key)) if self._asked.put_claim(claim) else NO_EFFECT

    def drop_claim(self, key: str) -> Effect:
        """Takes out a claim, `namespace/name`."""
        self._known.claims.pop(key, None)
        return self._anew(self.with_claim(key))

    def put_template(self, template: ClaimTemplate) -> Effect:
        """Takes in a template; pods whose claims are not made yet are counted anew."""
        changed = self._asked.put_template(template)
        return self._anew(self.with_template(template.key)) if changed else NO_EFFECT

    def drop_template(self, key: str) -> Effect:
        """Takes out a template, `namespace/name`."""
        self._known.templates.pop(key, None)
        return self._anew(self.with_template(key))

    def put_class(self, device_class: DeviceClass) -> Effect:
        """Takes in a DeviceClass; pods whose resources it serves now, or no longer, are counted anew."""
        shown = self.accounts.allocated_of(device_class.name) if device_class.name not in self.classes else ()
        return self._served_anew(self._known.classes.put(device_class), shown)

    def drop_class(self, name: str) -> Effect:
        """Takes out a DeviceClass; its pods are charged as before until their resource is released, or another serves it."""
        shown = self.accounts.allocated_of(name) if name in self.classes else ()
        return self._served_anew(self._known.classes.drop(name), shown)

    def release_resource(self, resource: str) -> Effect:
        """Has an extended resource cost nothing any more that no DeviceClass serves."""
        return self._served_anew(self._known.classes.release(resource), ())

    def put_queue(self, queue: Queue, *, moved: bool = False) -> Effect:
        """Takes in a queue; with another parent, all pods of the queue and of those below it are charged elsewhere.

        `moved`: that it has one, where somebody else keeps the tree.
        """
        changed = self._quotas.put(queue)
        if self._keeps_tree:
            moved = self._tree.put(queue.name, queue.parent)
        effect = self._rechain(queue.name) if moved else NO_EFFECT
        return self._limits_changed(effect, queue.name) if changed else effect

    def drop_queue(self, name: str) -> Effect:
        """Takes out a queue; its pods stay charged to its name."""
        had_limits = self._quotas.drop(name)
        if self._keeps_tree:
            self._tree.drop(name)
        effect = self._rechain(name)
        return self._limits_changed(effect, name) if had_limits else effect

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _to_ask(self, claims: Mapping[str, Amounts], queue: str, level: str) -> Mapping[str, Amounts]:
        asked, at_level = self.accounts.of(level).asked, self._quotas.at(level, queue, claims)
        return {claim: amounts for claim, amounts in at_level.items() if claim not in asked}

    def _chain(self, queue: str) -> Chain:
        return self._tree.chain(queue) if self._quotas.through_the_tree else Chain((queue,))

    def _standing(self, pod: Pod, queue: str) -> tuple[Chain, Wants]:
        """Where a pod is charged, and with what; a booking that is up to date serves as far as it goes."""
        known = None if pod.uid in self.behind else self._bookings.get(pod.uid)
        chain = known.chain if known is not None and known.queue == queue else self._chain(queue)
        return chain, self._wants(pod)

    def _wants(self, pod: Pod) -> Wants:
        """What a pod wants; a booking that is up to date serves as long as the pod refers to the same."""
        known = None if pod.uid in self.behind else self._bookings.get(pod.uid)
        # Which card a pod has may hang on nodes as well.
        unlinked = not self._asked.names_linked(pod)
        if unlinked and known is not None and (known.pod is pod or references(known.pod) == references(pod)):
            return known.wants
        return self._asked.by(pod)

    def _limits_changed(self, effect: Effect, name: str) -> Effect:
        """The effect with that of other limits of a queue: what it lists is shown of the queues below it too."""
        below = self._tree.subtree(name) if self._quotas.through_the_tree else (name,)
        return Effect(effect.touched.union(below), effect.dirty | self.accounts.waiting_below(name))

    def _rechain(self, name: str) -> Effect:
        """Charges the pods of a queue, and of those below it, where they belong now."""
        if not self._quotas.through_the_tree:
            return NO_EFFECT
        queues = self._tree.subtree(name)
        return self._anew([uid for queue in queues for uid in self._bookings.in_queue(queue)])

    def _anew(self, uids: Collection[str]) -> Effect:
        """Counts pods anew: at once, or as each of them is put again."""
        return NO_EFFECT if self.behind.defer(uids) else self._rebook(uids)

    def _rebook(self, uids: Iterable[str]) -> Effect:
        """Counts pods anew, all at once."""
        old = self._bookings.of(uids)
        new = [
            Booking(was.pod, was.stage, was.queue, self._chain(was.queue), self._asked.by(was.pod))
            for was in old
        ]
        changed = [(was, now) for was, now in zip(old, new, strict=True) if was != now]
        effect = self._bookings.replace([was for was, _ in changed], [now for _, now in changed])
        self._tell(now.pod for _, now in changed)
        return effect

    def _tell(self, pods: Iterable[Pod]) -> None:
        if self.follower is not None:
            for pod in pods:
                self.follower(pod.uid)

    def _served_anew(self, resources: Iterable[str], shown: Iterable[str]) -> Effect:
        """Counts the pods anew that ask for resources which another class serves, or none any more; `shown` are queues it is shown of."""
        asking = self._candidates.asking(resources)
        if self.behind.defer(asking):
            return Effect(frozenset(shown))
        concerned = self._candidates.booked(asking)
        effects = [self._rebook(pod.uid for pod, _, _ in concerned if pod.uid in self._bookings)]
        effects += [self.put_pod(*booked) for booked in concerned if booked[0].uid not in self._bookings]
        self._tell(pod for pod, _, _ in concerned)
        return Effect(frozenset(shown)).with_all(effects)
