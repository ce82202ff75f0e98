"""Pods that wait without a card name where `cards.podsWithoutCardName` is `infer`: their namespace names the card.

What a namespace says counts until the pod is let in; the lift writes the name on the pod, which speaks for itself from then on.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from core import names
from core.cards.inventory import Inventory
from core.index import Index
from core.objects import Namespace, Pod
from core.queues.usage import card_resources, names_card
from core.settings import Settings


class Naming:
    """Follows those pods as they are, beside the name that they are given in the books. Costs nothing where it is off."""

    def __init__(self, settings: Settings, inventory: Inventory) -> None:
        self._on = settings.features.cards and settings.cards.pods_without_card_name == "infer"
        self._inventory = inventory
        self._cards = card_resources(inventory) if self._on else frozenset[str]()
        self._defaults: dict[str, str] = {}
        self._unnamed: dict[str, Pod] = {}
        self._by_namespace = Index()
        self._by_resource = Index()

    def named(self, pod: Pod) -> Pod:
        """The pod as it counts: with the card of its namespace, if it waits for a card that it does not name."""
        if not self._on:
            return pod
        self.drop(pod.uid)
        resources = pod.extended if pod.gated and not pod.card_name else ()
        if not resources:
            return pod
        self._unnamed[pod.uid] = pod
        self._by_namespace.put(pod.uid, pod.namespace)
        self._by_resource.put(pod.uid, *resources)
        card = self._defaults.get(pod.namespace, "")
        if not card or len(self._of_cards(resources)) != 1:
            return pod
        return replace(pod, annotations={**pod.annotations, names.CARD_NAME_ANNOTATION: card})

    def lacks_card(self, pod: Pod) -> bool:
        """Whether a pod asks for a card, and neither it nor its namespace names one."""
        return pod.uid in self._unnamed and not pod.card_name and names_card(pod.extended, self._cards)

    def _of_cards(self, resources: Collection[str]) -> list[str]:
        return [resource for resource in resources if names_card((resource,), self._cards)]

    def records(self, pod: Pod) -> Mapping[str, str]:
        """What has to be written on the pod when it is let in: the card's name, where it is not the pod's own."""
        return (
            {names.CARD_NAME_ANNOTATION: pod.card_name} if pod.uid in self._unnamed and pod.card_name else {}
        )

    def as_it_is(self, uid: str) -> Pod | None:
        """A pod without the name that it was given; None for one that needs none."""
        return self._unnamed.get(uid)

    def drop(self, uid: str) -> None:
        """Takes out a pod; unknown UIDs are fine."""
        if self._unnamed.pop(uid, None) is not None:
            self._by_namespace.put(uid)
            self._by_resource.put(uid)

    def put_namespace(self, namespace: Namespace) -> Collection[str]:
        """Takes in a namespace. Returns the UIDs of the pods that have another card name now."""
        if not self._on or self._defaults.get(namespace.name, "") == namespace.default_card:
            return ()
        if namespace.default_card:
            self._defaults[namespace.name] = namespace.default_card
        else:
            del self._defaults[namespace.name]
        return self._by_namespace.get(namespace.name)

    def drop_namespace(self, name: str) -> Collection[str]:
        """Takes out a namespace. Returns the UIDs of the pods that it gave a card name, should any be left."""
        return self._by_namespace.get(name) if self._defaults.pop(name, "") else ()

    def relearn(self) -> Collection[str]:
        """Follows the cards that there are now. Returns the UIDs of the pods that may ask for a card only now, or no longer."""
        if not self._on:
            return ()
        before, self._cards = self._cards, card_resources(self._inventory)
        return {
            uid: None for name in sorted(before ^ self._cards) for uid in self._by_resource.get(name)
        }.keys()
