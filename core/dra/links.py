"""One device under several names: by the card's name, and by claims for DeviceClasses that serve exactly this card.

With the setting `cards.equivalents` a claim for such a class takes of the card's quota as well, and a pod with the card's name of the
quota of each of its classes, each once. What is taken of a card stands in the book of devices beside what is taken of classes, as
claims of their own: of cards and of devices the limits of other queues above may hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from core import names
from core.dra.amounts import Amounts, DeviceKey, nano, total
from core.dra.cost import Cost, cost_of
from core.dra.extended import implicit_claim
from core.dra.wants import Known, Wants, wants_of
from core.objects import Claim, ClaimTemplate, Pod
from core.objects.claim import DeviceRequest
from core.refusal import Refusal
from core.settings import DraSettings

OF_CARD: Final = "card:"
"""Begins the key of what a claim takes of a card; no namespace has a colon."""

_NANO_OF_MILLI: Final = 10**6

Served = Mapping[str, str | None]
"""Which class, if any, serves an extended resource."""


class Ask(NamedTuple):
    """A card and how much of it, in thousandths; `resource` is what that was read from, empty where it is not known now."""

    card: str
    milli: int
    resource: str


class CardQuotas(Protocol):
    """What the book of devices has to know of cards."""

    def named(self, pod: Pod) -> bool:
        """Whether a pod names a card that has classes."""

    def asked(self, pod: Pod) -> Ask | None:
        """The card that a pod is charged with; None for none, and while the choice among several is open."""

    def of_shares(self, pod: Pod) -> tuple[str, int] | None:
        """The card that the mGPU shares of a pod count against, and how much of it in thousandths; None for none."""

    def shortage(self, queue: str, card: str, milli: int, used: int, *, own: bool) -> Refusal | None:
        """Why so much more of a card does not fit beside what is used: the queue's `own` pods, or those below it."""


def card_key(card: str) -> DeviceKey:
    """The key under which a card stands beside devices."""
    return DeviceKey("", card)


def is_card_key(key: DeviceKey) -> bool:
    """Whether a key is that of a card: a class always has a name."""
    return not key.device_class


class Links:
    """Which cards and classes are the same devices; empty, and false, where none are."""

    def __init__(self, equivalents: Mapping[str, tuple[str, ...]]) -> None:
        self.classes = dict(equivalents)
        self._cards = {name: card for card, classes in equivalents.items() for name in classes}

    def __bool__(self) -> bool:
        return bool(self.classes)

    def names_class(self, device_class: str) -> bool:
        """Whether a DeviceClass is the same devices as some card."""
        return device_class in self._cards

    def linked(
        self, claims: Mapping[str, Amounts], pod: Pod, ask: Ask | None, served: Served
    ) -> dict[str, Amounts]:
        """The claims of a pod with what they take of cards, and what its own cards take of both; `served` are its resources.

        A scheduler may make a claim for the very resource by which the pod asks for its card: that is one request, and costs once.
        """
        found = dict(claims)
        for key, amounts in claims.items():
            cards = self._of_cards(amounts)
            if cards:
                found[f"{OF_CARD}{key}"] = cards
        if ask is not None and ask.card in self.classes:
            made = total(amounts for key, amounts in claims.items() if is_implicit(key, pod))
            amount = ask.milli * _NANO_OF_MILLI
            once = {
                DeviceKey(name): _for_the_card(ask, amount, made, name, pod, served)
                for name in self.classes[ask.card]
            }
            own = f"pod:{pod.uid}/{names.CARD_NAME_ANNOTATION}"
            of_classes = {key: amount - counted for key, counted in once.items() if counted < amount}
            of_card = amount - min(amount, sum(once.values()))
            found[own] = of_classes
            found[f"{OF_CARD}{own}"] = {card_key(ask.card): of_card} if of_card else {}
        return found

    def of_shares(self, pod: Pod, card: str, milli: int) -> dict[str, Amounts]:
        """What mGPU shares take of their card: they are parts of its quota, and no devices of its classes."""
        if card not in self.classes or not milli:
            return {}
        return {f"{OF_CARD}pod:{pod.uid}/{names.MGPU_CORE}": {card_key(card): milli * _NANO_OF_MILLI}}

    def _of_cards(self, amounts: Amounts) -> dict[DeviceKey, int]:
        cards: dict[DeviceKey, int] = {}
        for key, amount in amounts.items():
            card = "" if key.dimension else self._cards.get(key.device_class, "")
            if card:
                cards[card_key(card)] = cards.get(card_key(card), 0) + amount
        return cards


def _for_the_card(ask: Ask, amount: int, made: Amounts, device_class: str, pod: Pod, served: Served) -> int:
    """How much of what schedulers make of a class stands for the card, and not for other resources of the pod.

    One claim is made for all resources of a pod, and those that the class serves under other names are devices beside the card.
    """
    if ask.resource and served.get(ask.resource) != device_class:
        return 0
    others = sum(
        nano(-(-pod.requests.get(resource, 0) // 1000))
        for resource, by in served.items()
        if by == device_class and resource != ask.resource
    )
    return min(amount, max(0, made.get(DeviceKey(device_class), 0) - others))


def is_implicit(key: str, pod: Pod) -> bool:
    """Whether a claim is, or stands for, the one that a scheduler makes for the extended resources of a pod."""
    if key == implicit_claim(pod):
        return True
    # An entry of spec.resourceClaims has no slash in its name, an extended resource always has one.
    prefix = f"pod:{pod.uid}/"
    return key.startswith(prefix) and "/" in key.removeprefix(prefix)


def milli_of(amount: int) -> int:
    """Nano-units of a card in thousandths, rounded up."""
    return -(-amount // _NANO_OF_MILLI)


class Asked:
    """Counts pods anew each time; `known` are the objects, each with its cost."""

    def __init__(self, settings: DraSettings, links: Links, cards: CardQuotas | None) -> None:
        """`links` say which cards are the same devices as which classes, `cards` knows of those."""
        self.known = Known()
        self._settings = settings
        self._links = links
        self._cards = cards

    def put_claim(self, claim: Claim) -> bool:
        """Takes in a claim; returns whether it is another than before."""
        had = self.known.claims.get(claim.key)
        if had is not None and had[0] == claim:
            return False
        self.known.claims[claim.key] = claim, self._cost(claim.requests, claim.allocated)
        return True

    def put_template(self, template: ClaimTemplate) -> bool:
        """Takes in a template; returns whether it is another than before."""
        had = self.known.templates.get(template.key)
        if had is not None and had[0] == template:
            return False
        self.known.templates[template.key] = template, self._cost(template.requests, None)
        return True

    def _cost(self, requests: Sequence[DeviceRequest], allocated: Mapping[str, int] | None) -> Cost:
        return cost_of(requests, allocated, count_admin_access=self._settings.count_admin_access)

    def names_linked(self, pod: Pod) -> bool:
        """Whether a pod names a card that has classes."""
        return bool(self._links) and self._cards is not None and self._cards.named(pod)

    def by_claims(self, pod: Pod) -> Wants:
        """What a pod wants by its claims, those for extended resources among them; nothing of cards."""
        return wants_of(pod, self.known)

    def by(self, pod: Pod) -> Wants:
        """What a pod wants by its claims and by its card."""
        wants = self.by_claims(pod)
        if not self._links or self._cards is None:
            return wants
        ask = self._cards.asked(pod) if self.names_linked(pod) else None
        claims = self._linked(wants, pod, ask)
        shares = self._cards.of_shares(pod)
        if shares is not None:
            claims |= self._links.of_shares(pod, *shares)
        return replace(wants, claims=claims)

    def with_card(self, pod: Pod, card: Ask) -> Mapping[str, Amounts]:
        """The claims of a pod that has the choice, as if it had got this card."""
        return self._linked(self.by_claims(pod), pod, card)

    def _linked(self, wants: Wants, pod: Pod, ask: Ask | None) -> dict[str, Amounts]:
        served = {} if ask is None else {each: self.known.classes.serving(each) for each in pod.extended}
        return self._links.linked(wants.claims, pod, ask, served)
