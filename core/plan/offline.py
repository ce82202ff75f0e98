"""A complete plan: what a controller that knows these objects would do, until there is nothing left to do."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from core import reasons
from core.affinity import Patch
from core.catalogue.notes import event_note
from core.display.figures import Figures, figures_of
from core.display.notices import queue_notices
from core.objects import Pod
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.plan.reservations import Reservations, overdue_notice
from core.queues.ledger import Ledger
from core.queues.rollouts import Rollouts
from core.queues.shortfall import uncountable
from core.refusal import Refusal
from core.stage import Stage
from core.steps import finish


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """What becomes of one pod: `lift`, `hold`, or what it is already: `reserved`, `allocated`, `ignored`."""

    queue: str
    decision: str
    why: Refusal | None = None
    assigned: Mapping[str, int] | None = None
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event that would be emitted; `object` is `Kind namespace/name`, or `Kind name`."""

    object: str
    reason: str
    message: str
    type: str = "Warning"


@dataclass(frozen=True, slots=True)
class Plan:
    """Pods by `namespace/name`, queues as they are after the plan by name."""

    pods: Mapping[str, PlannedPod]
    queues: Mapping[str, Figures]
    events: tuple[PlannedEvent, ...]


def plan(ledger: Ledger, pods: Iterable[Pod], now: int | None = None) -> Plan:
    """Repeats the quota pass over the whole ledger until it lifts nobody; `pods` are all pods to be told about.

    `now`, in microseconds since 1970, lets pods be late for their nodes; objects from a file have no present, and there
    nobody is. The ledger holds the lifts as assumptions afterwards.
    """
    known = tuple(pods)
    lifts: dict[str, Lift] = {}
    holds: dict[str, Hold] = {}
    for decision in decisions(ledger, Planner(ledger)):
        holds.pop(decision.pod.uid, None)
        if isinstance(decision, Lift):
            lifts[decision.pod.uid] = decision
        else:
            holds[decision.pod.uid] = decision
    return Plan(
        pods={pod.key: _planned(ledger, pod, lifts.get(pod.uid), holds.get(pod.uid)) for pod in known},
        queues={name: figures_of(ledger, name) for name in sorted({*ledger.queues, *ledger.accounts})},
        events=(
            *_queue_events(ledger),
            *_pod_events(holds.values(), _rollouts(ledger)),
            *_spread_events(lifts.values()),
            *_uncounted_events(ledger),
            *_late_events(ledger, known, now),
        ),
    )


def decisions(ledger: Ledger, planner: Planner) -> Iterator[Decision]:
    """What passes over the whole ledger decide that are repeated until nobody is lifted; of each pod the last one counts."""
    finish(ledger.settle())
    lifted = True
    while lifted:
        lifted = False
        for queue in planner.order(list(ledger.accounts)):
            for decision in planner.decide(queue):
                lifted = lifted or isinstance(decision, Lift)
                yield decision


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
        return PlannedPod(queue, "hold", hold.why)
    return PlannedPod(queue, _DECISIONS[ledger.stages.of(pod)])


def _event(about: str, reason: str, message: str) -> PlannedEvent:
    return PlannedEvent(about, reason, event_note(reason, message))


def _queue_events(ledger: Ledger) -> Iterable[PlannedEvent]:
    for name in sorted(ledger.limits):
        for notice in queue_notices(ledger, name):
            yield _event(f"Queue {name}", notice.reason, notice.message)


def _rollouts(ledger: Ledger) -> Rollouts:
    rollouts = Rollouts(ledger)
    for entry in ledger.entries():
        rollouts.put_pod(entry.pod)
    return rollouts


def _pod_events(holds: Iterable[Hold], rollouts: Rollouts) -> Iterable[PlannedEvent]:
    told: set[str] = set()
    for hold in holds:
        if hold.group is not None and hold.group.stored and hold.group.key not in told:
            told.add(hold.group.key)
            yield _event(hold.group.title, hold.why.code, hold.why.message)
        if hold.announced:
            yield _event(f"Pod {hold.pod.key}", hold.why.code, hold.why.message)
            note = rollouts.obstacle(hold.pod, hold.why.code)
            if note:
                yield _event(f"Pod {hold.pod.key}", reasons.ROLLOUT_NEEDS_QUOTA, note)


def _spread_events(lifts: Iterable[Lift]) -> Iterable[PlannedEvent]:
    told: set[str] = set()
    for lift in lifts:
        if lift.spread is not None and lift.spread.group.key not in told:
            told.add(lift.spread.group.key)
            about = lift.spread.group.title if lift.spread.group.stored else f"Pod {lift.pod.key}"
            yield _event(about, reasons.TASK_SPREAD, lift.spread.message)


def _uncounted_events(ledger: Ledger) -> Iterable[PlannedEvent]:
    for _, account in sorted(ledger.accounts.items()):
        for entry in account.uncounted_pods.values():
            why = uncountable(entry.queue, entry.demand.problem)
            yield _event(f"Pod {entry.pod.key}", why.code, why.message)


def _reserved_since(pod: Pod) -> tuple[int, int]:
    return pod.released, pod.released


def _late_events(ledger: Ledger, pods: Iterable[Pod], now: int | None) -> Iterable[PlannedEvent]:
    if now is None:
        return
    reservations = Reservations(ledger.settings.reservation, ledger.stages)
    for pod in pods:
        reservations.put_pod(pod, partial(_reserved_since, pod))
    for overdue in reservations.take_due(now):
        pod = overdue.pod
        reason, note = overdue_notice(overdue, ledger.attribution(pod).queue, ledger.settings.reservation)
        yield _event(f"Pod {pod.key}", reason, note)
