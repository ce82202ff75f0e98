"""What each pod asks for, by all that is known: of claims and their templates, of DeviceClasses, and of cards that are the same devices."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.dra.amounts import Amounts
from core.dra.cost import Cost, cost_of
from core.dra.links import Ask, CardQuotas, Links
from core.dra.wants import Known, Wants, wants_of
from core.objects import Claim, ClaimTemplate, Pod
from core.objects.claim import DeviceRequest
from core.settings import DraSettings


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

    def put_template(self, template: ClaimTemplate) -> None:
        """Takes in a template."""
        self.known.templates[template.key] = template, self._cost(template.requests, None)

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
