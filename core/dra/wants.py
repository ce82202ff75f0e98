"""Which claims a pod holds or will hold, and what each of them costs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from core import reasons
from core.dra.amounts import Amounts
from core.dra.cost import Cost
from core.dra.extended import DeviceClasses, charged_for, unclaimed
from core.objects import Claim, ClaimTemplate, Pod


@dataclass(frozen=True, slots=True)
class Wants:
    """The claims of a pod: key -> amounts. Two entries that come to the same claim are one.

    The key is the claim's `namespace/name`, or `pod:<uid>/<entry>` for one that is charged by its template or, with the name of
    an extended resource as entry, that a scheduler will make for that.
    """

    claims: Mapping[str, Amounts] = field(default_factory=dict)
    reason: str = ""
    problem: str = ""
    """Why the pod has to wait whatever is left; empty when it need not."""


class ClaimSource(Protocol):
    """The claims and templates that are known, and what they cost."""

    def claim(self, key: str) -> tuple[Claim, Cost] | None:
        """A claim by `namespace/name`, None while it does not exist."""

    def template(self, key: str) -> tuple[ClaimTemplate, Cost] | None:
        """A template by `namespace/name`, None while it does not exist."""

    @property
    def classes(self) -> DeviceClasses:
        """The DeviceClasses: a scheduler makes claims for the extended resources that they serve."""


@dataclass(slots=True)
class Known:
    """The claims and templates that exist, with their costs, and the DeviceClasses."""

    claims: dict[str, tuple[Claim, Cost]] = field(default_factory=dict)
    templates: dict[str, tuple[ClaimTemplate, Cost]] = field(default_factory=dict)
    classes: DeviceClasses = field(default_factory=DeviceClasses)

    def claim(self, key: str) -> tuple[Claim, Cost] | None:
        """A claim by `namespace/name`, None while it does not exist."""
        return self.claims.get(key)

    def template(self, key: str) -> tuple[ClaimTemplate, Cost] | None:
        """A template by `namespace/name`, None while it does not exist."""
        return self.templates.get(key)


def claim_keys(pod: Pod) -> Iterable[str]:
    """The claims that the pod refers to by name, or that its status names: `namespace/name`."""
    for entry, claim, _ in pod.claims:
        name = claim or pod.generated_claims.get(entry)
        if name:
            yield f"{pod.namespace}/{name}"


def template_keys(pod: Pod) -> Iterable[str]:
    """The templates that claims of the pod are made from: `namespace/name`."""
    return (f"{pod.namespace}/{template}" for _, claim, template in pod.claims if template and not claim)


def claim_uids(pod: Pod, source: ClaimSource) -> frozenset[str]:
    """The UIDs of the claims that a pod refers to and that exist, save one that a scheduler makes while it binds the pod."""
    named = {claim or pod.generated_claims.get(entry) for entry, claim, _ in pod.claims if entry}
    found = (source.claim(f"{pod.namespace}/{name}") for name in named if name)
    return frozenset(claim.uid for claim, _ in filter(None, found))


def wants_of(pod: Pod, source: ClaimSource) -> Wants:
    """What the pod wants by the objects known now.

    A claim that is to be made from a template counts as soon as the template is there, so that nothing is given away
    before the claim is made; once it is, the claim's own spec counts. So does a claim that a scheduler may make.
    """
    resolution = _Resolution(pod, source)
    if source.classes:
        resolution.extended()
    for entry, claim, template in pod.claims:
        if claim:
            resolution.named(claim)
        elif template:
            resolution.templated(entry, template)
        else:
            resolution.fail(
                reasons.CLAIM_NOT_FOUND, f"resourceClaims entry {entry} names neither claim nor template"
            )
    return resolution.wants


class _Resolution:
    """Goes through the entries of one pod; the first problem is the one that is told."""

    def __init__(self, pod: Pod, source: ClaimSource) -> None:
        self._pod = pod
        self._source = source
        self._claims: dict[str, Amounts] = {}
        self._failure = ("", "")

    @property
    def wants(self) -> Wants:
        return Wants(self._claims, *self._failure)

    def fail(self, reason: str, problem: str) -> None:
        self._failure = self._failure if self._failure[0] else (reason, problem)

    def extended(self) -> None:
        """The extended resources that DeviceClasses serve."""
        for resource in unclaimed(self._pod):
            device_class = self._source.classes.serving(resource)
            if device_class is not None:
                key = f"pod:{self._pod.uid}/{resource}"
                self._claims[key] = charged_for(self._pod.requests, resource, device_class)

    def named(self, name: str) -> None:
        """A claim that the pod's spec names."""
        key = f"{self._pod.namespace}/{name}"
        found = self._source.claim(key)
        if found is None:
            self.fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaim {key} does not exist")
        else:
            self._charge(key, f"ResourceClaim {key}", found[1])

    def templated(self, entry: str, template: str) -> None:
        """A claim that is made for the pod from a template; its status tells how it is called, or that none is needed."""
        pod = self._pod
        if entry in pod.generated_claims and pod.generated_claims[entry] is None:
            return
        name = pod.generated_claims.get(entry)
        found = self._source.claim(f"{pod.namespace}/{name}") if name else None
        if found is not None and _made_for(pod, found[0]):
            self._charge(found[0].key, f"ResourceClaim {found[0].key}", found[1])
            return
        if found is not None:
            self.fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaim {found[0].key} was not made for this pod")
        elif name:
            self.fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaim {pod.namespace}/{name} does not exist")
        self._from_template(entry, f"{pod.namespace}/{template}", needed=not name)

    def _from_template(self, entry: str, key: str, *, needed: bool) -> None:
        found = self._source.template(key)
        if found is not None:
            self._charge(f"pod:{self._pod.uid}/{entry}", f"ResourceClaimTemplate {key}", found[1])
        elif needed:
            self.fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaimTemplate {key} does not exist")

    def _charge(self, key: str, display: str, cost: Cost) -> None:
        self._claims[key] = cost.amounts
        if cost.problem:
            self.fail(reasons.CLAIM_NOT_COMPUTABLE, f"{display} cannot be counted: {cost.problem}")


def _made_for(pod: Pod, claim: Claim) -> bool:
    """Whether a claim was made for the pod, or once for all of its group."""
    return pod.uid in claim.owners or (claim.group != "" and claim.group == pod.scheduling_group)


def references(pod: Pod) -> tuple[object, ...]:
    """All of a pod that decides which claims it has, or will have."""
    return pod.key, pod.claims, pod.generated_claims, pod.scheduling_group, pod.bound, pod.requests
