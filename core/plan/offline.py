"""A complete plan: what a controller that knows these objects would do, until there is nothing left to do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core import reasons
from core.affinity import Patch
from core.objects import Pod
from core.plan.lift import Hold, Lift, Planner, share_of
from core.queues.demand import Stage, stage_of
from core.queues.ledger import Ledger


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """What becomes of one pod: `lift`, `hold`, or what it is already: `reserved`, `allocated`, `ignored`."""

    queue: str
    decision: str
    reason: str = ""
    message: str = ""
    assigned: Mapping[str, int] | None = None
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class PlannedQueue:
    """A queue after the plan; amounts in thousandths, `share` the largest part of a limit in use."""

    quota: Mapping[str, int]
    allocated: Mapping[str, int]
    reserved: Mapping[str, int]
    waiting: Mapping[str, int]
    share: float


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event that would be emitted; `object` is `Kind namespace/name`, or `Kind name`."""

    object: str
    reason: str
    message: str
    type: str = "Warning"


@dataclass(frozen=True, slots=True)
class Plan:
    """Pods by `namespace/name`, queues by name."""

    pods: Mapping[str, PlannedPod]
    queues: Mapping[str, PlannedQueue]
    events: tuple[PlannedEvent, ...]


def plan(ledger: Ledger, pods: Iterable[Pod]) -> Plan:
    """Repeats the quota pass over the whole ledger until it lifts nobody; `pods` are all pods to be told about.

    The ledger holds the lifts as assumptions afterwards.
    """
    lifts: dict[str, Lift] = {}
    holds: dict[str, Hold] = {}
    planner = Planner(ledger)
    lifted = True
    while lifted:
        lifted = False
        holds.clear()
        for queue in planner.order(list(ledger.accounts)):
            for decision in planner.decide(queue):
                if isinstance(decision, Lift):
                    lifts[decision.pod.uid] = decision
                    lifted = True
                else:
                    holds[decision.pod.uid] = decision
    return Plan(
        pods={pod.key: _planned(ledger, pod, lifts.get(pod.uid), holds.get(pod.uid)) for pod in pods},
        queues={name: _queue(ledger, name) for name in sorted({*ledger.queues, *ledger.accounts})},
        events=(*_queue_events(ledger), *_pod_events(holds.values())),
    )


def patch_as_given(patch: Patch, raw: Mapping[str, Any]) -> Patch:
    """The patch without tests of what the given object lacks: a manifest has neither uid nor resourceVersion."""
    metadata = raw.get("metadata")
    present = metadata if isinstance(metadata, dict) else {}
    absent = {f"/metadata/{key}" for key in ("uid", "resourceVersion") if key not in present}
    return [operation for operation in patch if operation["path"] not in absent]


_DECISIONS = {
    Stage.RESERVED: "reserved",
    Stage.ALLOCATED: "allocated",
    Stage.WAITING: "hold",
    Stage.IGNORED: "ignored",
}


def _planned(ledger: Ledger, pod: Pod, lift: Lift | None, hold: Hold | None) -> PlannedPod:
    queue = ledger.attribution(pod).queue
    if lift is not None:
        return PlannedPod(queue, "lift", assigned=lift.assigned or None, patch=lift.patch)
    if hold is not None:
        return PlannedPod(queue, "hold", hold.reason, hold.message)
    return PlannedPod(queue, _DECISIONS[stage_of(pod)])


def _queue(ledger: Ledger, name: str) -> PlannedQueue:
    limits, account = ledger.limits.get(name), ledger.accounts.get(name)
    return PlannedQueue(
        quota={**limits.cards, **limits.shares} if limits else {},
        allocated=dict(account.allocated) if account else {},
        reserved=dict(account.reserved) if account else {},
        waiting=dict(account.waiting) if account else {},
        share=share_of(ledger, name),
    )


def _queue_events(ledger: Ledger) -> Iterable[PlannedEvent]:
    for name in sorted(ledger.limits):
        malformed = ledger.limits[name].malformed
        if malformed:
            yield PlannedEvent(f"Queue {name}", reasons.CARD_QUOTA_MALFORMED, malformed_note(malformed))


def malformed_note(malformed: str) -> str:
    """What is said on a queue whose stored card quota cannot be read."""
    return f"card quota cannot be read, the queue has no cards: {malformed}"


def _pod_events(holds: Iterable[Hold]) -> Iterable[PlannedEvent]:
    told: set[str] = set()
    for hold in holds:
        if hold.group is not None and hold.group.key not in told:
            told.add(hold.group.key)
            yield PlannedEvent(f"PodGroup {hold.group.key}", hold.reason, hold.message)
        if hold.announced:
            yield PlannedEvent(f"Pod {hold.pod.key}", hold.reason, hold.message)
