"""Which claims a pod holds or will hold, what each of them costs, and whether they are those that were counted as it was let in."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from core import names, reasons
from core.dra.amounts import Amounts
from core.dra.cost import Cost
from core.dra.extended import DeviceClasses, charged_for, claimable, implicit_claim
from core.dra.record import Counted, read_counted, render_counted
from core.objects import Claim, ClaimTemplate, Pod
from core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Wants:
    """The claims of a pod: key -> amounts. Two entries that come to the same claim are one.

    The key is the claim's `namespace/name`, or `pod:<uid>/<entry>` for one that is charged by its template or, with the name of
    an extended resource as entry, that a scheduler will make for that. One that is out of sight and charged by the record of
    its pod has `uid:<its uid>` with the amounts: pods that share it have it once, as far as their records agree.
    """

    claims: Mapping[str, Amounts] = field(default_factory=dict)
    why: Refusal | None = None
    """Why the pod has to wait whatever is left; None when it need not."""
    unasked: frozenset[str] = frozenset()
    """Those of the claims for which no quota was asked when the pod was let in, or bound, as far as records tell."""
    templates: tuple[str, ...] = ()
    """The templates, `namespace/name`, that say what a claim will be which is not made yet."""


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


def record_of(pod: Pod, source: ClaimSource) -> str:
    """The record of what is counted for the entries of `spec.resourceClaims`, see core.dra.record."""
    resolution = _Resolution(pod, source)
    resolution.resolve()
    return render_counted(resolution.counted)


def unclaimed(pod: Pod, source: ClaimSource) -> dict[str, str]:
    """The extended resources of a pod that DeviceClasses serve, with the class, while no claim is in view that was made for them.

    A scheduler allocates that claim before it names it in the status. Another one under its name stands for nothing.
    """
    if not source.classes:
        return {}
    named = implicit_claim(pod)
    made = source.claim(named) if named else None
    if made is not None and made[0].allocated is not None:
        return {}
    served = {resource: source.classes.serving(resource) for resource in claimable(pod)}
    return {resource: served_by for resource, served_by in served.items() if served_by is not None}


def late_record_of(pod: Pod, source: ClaimSource) -> str:
    """The record of a pod that runs with claims which are not on it, for nobody was asked at its bind; empty where all are.

    A claim that is on it already stays as it is.
    """
    known = record_on(pod) or {}
    missing = {entry for entry, _, _ in pod.claims if entry and not (entry in known and known[entry].uid)}
    if not missing or not (pod.started or pod.phase == "Running"):
        return ""
    resolution = _Resolution(pod, source)
    resolution.resolve()
    found = {
        entry: replace(each, unasked=entry not in known or not known[entry].covers(each.amounts))
        for entry, each in resolution.counted.items()
        if entry in missing and each.uid
    }
    return render_counted({**known, **found}) if found else ""


def wants_of(pod: Pod, source: ClaimSource) -> Wants:
    """What the pod wants by the objects known now.

    A claim that is to be made from a template counts as soon as the template is there, so that nothing is given away
    before the claim is made; once it is, the claim's own spec counts. So does a claim that a scheduler may make.

    A pod that was let in has what was counted then, on record: a claim that is not to be found any more, or not as one of this
    pod, is charged by that. So is one in the place of which another was made, or a larger one than its template said: before
    the bind the other costs nothing, for the bind will ask for it, and afterwards not before it has devices, for the pod runs
    on with the first.
    """
    resolution = _Resolution(pod, source)
    resolution.resolve()
    return resolution.wants


class _Resolution:
    """Goes through the entries of one pod; the first problem is the one that is told."""

    def __init__(self, pod: Pod, source: ClaimSource) -> None:
        self.counted: dict[str, Counted] = {}
        """What the entries were found to be, without those that need no claim or cannot be counted at all."""
        self._pod = pod
        self._source = source
        record = record_on(pod)
        self._record = record or {}
        # Before there were such records, whoever was let in had been asked for what it named.
        self._let_in_before = record is None and pod.let_in and not pod.bound
        self._claims: dict[str, Amounts] = {}
        self._unasked: set[str] = set()
        self._templates: list[str] = []
        self._failure: Refusal | None = None

    @property
    def wants(self) -> Wants:
        return Wants(self._claims, self._failure, frozenset(self._unasked), tuple(self._templates))

    def resolve(self) -> None:
        pod = self._pod
        estimated = unclaimed(pod, self._source)
        for resource, device_class in estimated.items():
            self._claims[f"pod:{pod.uid}/{resource}"] = charged_for(pod.requests, resource, device_class)
        for entry, claim, template in pod.claims:
            if claim and (entry or not estimated):
                self._named(entry, claim)
            elif claim:
                self._implicit(claim)
            elif template:
                self._templated(entry, template)
            else:
                text = f"resourceClaims entry {entry} names neither claim nor template"
                self._fail(reasons.CLAIM_NOT_FOUND, text)

    def _fail(self, code: str, problem: str) -> None:
        self._failure = self._failure or Refusal(code, problem)

    def _implicit(self, name: str) -> None:
        """A claim for extended resources that is charged by those."""
        key = f"{self._pod.namespace}/{name}"
        if self._source.claim(key) is None:
            self._fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaim {key} does not exist")

    def _named(self, entry: str, name: str) -> None:
        """A claim that the pod's spec names."""
        key = f"{self._pod.namespace}/{name}"
        found = self._source.claim(key)
        if found is not None:
            self._found(entry, *found)
        elif entry in self._record:
            self._by_record(entry)
        else:
            self._fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaim {key} does not exist")

    def _templated(self, entry: str, template: str) -> None:
        """A claim that is made for the pod from a template; its status tells how it is called, or that none is needed."""
        pod = self._pod
        if entry in pod.generated_claims and pod.generated_claims[entry] is None:
            return
        name, recorded = pod.generated_claims.get(entry), self._record.get(entry)
        found = self._source.claim(f"{pod.namespace}/{name}") if name else None
        if found is not None and (
            made_for(pod, found[0]) or (recorded is not None and found[0].uid == recorded.uid)
        ):
            self._found(entry, *found)
            return
        if recorded is not None and recorded.uid:
            self._by_record(entry)
            return
        if recorded is None and found is not None:
            text = f"ResourceClaim {found[0].key} was not made for this pod"
            self._fail(reasons.CLAIM_NOT_FOUND, text)
        elif recorded is None and name:
            self._fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaim {pod.namespace}/{name} does not exist")
        self._from_template(entry, f"{pod.namespace}/{template}", needed=not name and recorded is None)

    def _found(self, entry: str, claim: Claim, cost: Cost) -> None:
        """The claim of an entry, which may be another one than was counted when the pod was let in."""
        self.counted[entry] = Counted(claim.uid, cost.amounts)
        recorded = self._record.get(entry)
        if recorded is not None and not self._is_counted(recorded, claim, cost):
            self._by_record(entry)
            if not (self._pod.bound and claim.allocated is not None):
                self._check(f"ResourceClaim {claim.key}", cost)
                return
        self._charge(claim.key, f"ResourceClaim {claim.key}", cost)
        if not self._was_asked(recorded, claim, cost):
            self._unasked.add(claim.key)

    def _was_asked(self, recorded: Counted | None, claim: Claim, cost: Cost) -> bool:
        """Whether quota was asked for this claim when the pod was let in, or bound."""
        if recorded is None:
            return self._let_in_before
        return not recorded.unasked and (
            recorded.uid == claim.uid if recorded.uid else recorded.covers(cost.amounts)
        )

    def _is_counted(self, recorded: Counted, claim: Claim, cost: Cost) -> bool:
        """Whether a claim is the one on record. One that was not made then may be, if it costs no more; bound, it is."""
        if recorded.uid:
            return recorded.uid == claim.uid
        return self._pod.bound or recorded.covers(cost.amounts)

    def _by_record(self, entry: str) -> None:
        """A claim as it was counted when the pod was let in."""
        counted = self._record[entry]
        self.counted.setdefault(entry, counted)
        # With the amounts, as a claim may have been narrowed by its allocation between two records.
        amounts = render_counted({"": Counted("", counted.amounts)})
        key = f"uid:{counted.uid}{amounts}" if counted.uid else f"pod:{self._pod.uid}/{entry}"
        self._claims[key] = counted.amounts
        if counted.unasked:
            self._unasked.add(key)

    def _from_template(self, entry: str, key: str, *, needed: bool) -> None:
        """A claim that is not there: by its template, unless the pod was let in, whatever its template was made into since."""
        if entry in self._record:
            self._by_record(entry)
            return
        self._templates.append(key)
        found = self._source.template(key)
        if found is not None:
            self._charge(f"pod:{self._pod.uid}/{entry}", f"ResourceClaimTemplate {key}", found[1])
            self.counted[entry] = Counted("", found[1].amounts)
        elif needed:
            self._fail(reasons.CLAIM_NOT_FOUND, f"ResourceClaimTemplate {key} does not exist")

    def _charge(self, key: str, display: str, cost: Cost) -> None:
        self._claims[key] = cost.amounts
        self._check(display, cost)

    def _check(self, display: str, cost: Cost) -> None:
        if cost.problem:
            self._fail(reasons.CLAIM_NOT_COMPUTABLE, f"{display} cannot be counted: {cost.problem}")


def record_on(pod: Pod) -> Mapping[str, Counted] | None:
    """What was counted for a pod that was let in; None for any other, and for one that an earlier version let in."""
    text = pod.annotations.get(names.CLAIMS_ANNOTATION)
    return read_counted(text) if text is not None and pod.let_in else None


def made_for(pod: Pod, claim: Claim) -> bool:
    """Whether a claim was made for the pod, or once for all of its group."""
    return pod.uid in claim.owners or (claim.group != "" and claim.group == pod.scheduling_group)


def references(pod: Pod) -> tuple[object, ...]:
    """All of a pod that decides which claims it has, or will have."""
    record = pod.annotations.get(names.CLAIMS_ANNOTATION), pod.let_in
    at = pod.bound, pod.phase
    return pod.key, pod.claims, pod.generated_claims, pod.scheduling_group, pod.requests, record, at


def unresolved(pod: Pod, source: ClaimSource) -> str:
    """Which claim of a pod with a record is not known, though the pod is to be bound; empty when there is none such.

    The claim of an extended resource is none such: its pod is charged for what it may get.
    """
    counted = record_on(pod)
    if counted is None:
        return ""
    for entry, claim, name in _named(pod):
        if not name:
            return f"the ResourceClaim of the entry {entry} is not known yet; the scheduler tries again"
        found = source.claim(f"{pod.namespace}/{name}")
        if found is None:
            return f"ResourceClaim {pod.namespace}/{name} is not known yet; the scheduler tries again"
        recorded = counted.get(entry)
        known = recorded is not None and recorded.uid == found[0].uid
        if not claim and not known and not made_for(pod, found[0]):
            return f"ResourceClaim {pod.namespace}/{name} was not made for this pod"
    return ""


def all_counted(pod: Pod, source: ClaimSource) -> bool:
    """Whether every claim of a pod is there and is the one on its record; of what earlier versions let in nobody knows more."""
    counted = record_on(pod)
    if counted is None:
        return True
    for entry, _, name in _named(pod):
        found = source.claim(f"{pod.namespace}/{name}") if name else None
        if found is None or entry not in counted or counted[entry].uid != found[0].uid:
            return False
    return True


def _named(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Each entry that needs a claim, the claim that it names itself, and what its claim is called; empty while nobody knows."""
    for entry, claim, _ in pod.claims:
        if entry and pod.generated_claims.get(entry, "") is not None:
            yield entry, claim, claim or pod.generated_claims.get(entry) or ""
