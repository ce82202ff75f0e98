"""A Binding under review: what it asks for, and the answer that carries our records.

The API server calls admission before it looks whether the pod exists, has the uid, is gated or bound, and it never
looks at the node. Whoever books cards for a bind has to look at all of that first. The annotations of a Binding are
laid over the pod's in the very write that sets `spec.nodeName`, and nothing else guards them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from core import names, reasons
from core.admission.request import ALLOWED, Add, AdmissionRequest, Decision, Denial
from core.objects import Pod
from core.objects import raw as read
from core.refusal import Refusal
from core.violations import Violation


@dataclass(slots=True)
class Target:
    """The pod and the node of a Binding; not frozen, as AdmissionRequest is not.

    `uid` is empty when the scheduler does not say which pod it means.
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str]
    renamed_to: str
    """The name inside the object where it differs from the request's; the API server refuses such a Binding."""

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return f"{self.namespace}/{self.name}"


def target_of(request: AdmissionRequest) -> Target:
    """What a request for `pods/binding` or the older `bindings` is about."""
    metadata = read.mapping(request.object, "metadata")
    inner = read.text(metadata, "name")
    name = request.name or inner
    return Target(
        namespace=request.namespace or read.text(metadata, "namespace") or "default",
        name=name,
        uid=read.text(metadata, "uid"),
        node=read.text(read.mapping(request.object, "target"), "name"),
        annotations=read.texts(metadata, "annotations"),
        renamed_to=inner if inner not in ("", name) else "",
    )


def obstacle(target: Target, pod: Pod | None) -> Refusal | None:
    """Why the API server will refuse this bind whatever we answer; None when it can go through."""
    if pod is None:
        return Refusal(reasons.POD_NOT_FOUND, f"pod {target.key} does not exist")
    if target.renamed_to:
        return Refusal(reasons.POD_REPLACED, f"the Binding of pod {target.key} names pod {target.renamed_to}")
    if target.uid and target.uid != pod.uid:
        return Refusal(
            reasons.POD_REPLACED, f"pod {target.key} has uid {pod.uid}, the Binding names {target.uid}"
        )
    if pod.deleting or pod.terminal:
        return Refusal(reasons.POD_TERMINATING, f"pod {target.key} is being deleted or has ended")
    if pod.bound:
        return Refusal(
            reasons.POD_ALREADY_BOUND, f"pod {target.key} is bound to node {pod.node_name} already"
        )
    if pod.gates:
        return Refusal(reasons.POD_GATED, f"pod {target.key} still carries the gates {', '.join(pod.gates)}")
    return None


def grant(target: Target, records: Mapping[str, str]) -> Decision:
    """Lets the bind through with exactly these records; what the Binding brought along under our keys is dropped."""
    kept = {key: value for key, value in target.annotations.items() if not names.is_protected(key)}
    wanted = {**kept, **records}
    if wanted == target.annotations:
        return ALLOWED
    return Decision(patch=(Add(("metadata", "annotations"), wanted),))


def refuse(why: Refusal) -> Decision:
    """Refuses the bind; the scheduler shows the message in its FailedScheduling event and tries again later."""
    status, reason = (404, "NotFound") if why.code == reasons.POD_NOT_FOUND else (409, "Conflict")
    violation = Violation(why.code, "target.name", why.message, "Forbidden")
    return Decision(denial=Denial(status, reason, f"[{why.code}] {why.message}", (violation,)))


def leaderless(what: str) -> Decision:
    """The refusal of a replica that cannot decide, and finds nobody who can."""
    return refuse(Refusal(reasons.NO_LEADER, f"{what}; the scheduler will try again"))


def unasked(decision: Decision) -> Refusal | None:
    """Why no leader could be asked, where that is what an answer says; None when one has answered."""
    said = decision.denial.violations if decision.denial is not None else ()
    found = (Refusal(one.code, one.detail) for one in said if one.code == reasons.NO_LEADER)
    return next(found, None)
