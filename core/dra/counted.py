"""Whether a pod that was let in is bound with the claims that were counted then."""

from core.dra.wants import ClaimSource, made_for, record_on
from core.objects import Pod


def unresolved(pod: Pod, source: ClaimSource) -> str:
    """Which claim of a pod with a record is not known, though the pod is to be bound; empty when there is none such.

    The claim of an extended resource is none such: its pod is charged for what it may get.
    """
    counted = record_on(pod)
    if counted is None:
        return ""
    for entry, claim, _ in pod.claims:
        if not entry or _needs_none(pod, entry):
            continue
        name = claim or pod.generated_claims.get(entry)
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
    for entry, claim, _ in pod.claims:
        if not entry or _needs_none(pod, entry):
            continue
        name = claim or pod.generated_claims.get(entry)
        found = source.claim(f"{pod.namespace}/{name}") if name else None
        if found is None or entry not in counted or counted[entry].uid != found[0].uid:
            return False
    return True


def _needs_none(pod: Pod, entry: str) -> bool:
    return entry in pod.generated_claims and pod.generated_claims[entry] is None
