"""Whether pods would run: let in by their queues now, or before, and with room on some node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core import reasons
from core.affinity import NodeRequirement
from core.answers.beyond import EmptyCluster
from core.answers.room import Nodes, Seat, Seeker, cards_of, reserved, seats
from core.answers.whatif import Change, WhatIf
from core.answers.words import counted
from core.objects import Pod
from core.objects.taints import Tolerations
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import decisions
from core.queues.ledger import Ledger
from core.queues.shortfall import held_by_others
from core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one pod."""

    pod: Pod
    queue: str
    """The one that it would charge; empty for a pod that asks for nothing of ours."""
    cards: Mapping[str, int]
    """What it would be let in for, whole cards."""
    hold: Hold | None
    """Why it would wait at the gate."""
    seat: Seat
    """Where it would go; nothing for one that waits at the gate."""
    apart: Refusal | None = None
    """Why its scheduler would leave it alone, though nothing holds it at our gate: gates of others, or a group that starts as a whole."""
    never: str = ""
    """Why it would not run even if nobody else were there; empty for one that would."""

    @property
    def runs(self) -> bool:
        """Whether nothing is seen that keeps it from running at once."""
        return self.hold is None and self.apart is None and not self.seat.problem


def verdicts(
    ledger: Ledger,
    pods: Sequence[Pod],
    tolerations: Mapping[str, Tolerations],
    change: Change | None = None,
) -> list[Verdict]:
    """What becomes of these pods, which are in the books if they ask for anything; `tolerations` of whoever has no node, by UID.

    Of those who wait everybody is served in order. The books are as they were afterwards.
    """
    whatif, change = WhatIf(ledger), change or Change.none()
    with whatif.made(change):
        found = _decided(ledger, pods, tolerations)
    waiting = [verdict for verdict in found if not verdict.runs]
    if not waiting:
        return found
    with whatif.made(change.without(*_others(ledger, pods))):
        alone = {verdict.pod.uid: verdict for verdict in _decided(ledger, pods, tolerations, empty=True)}
    cluster = EmptyCluster(ledger, tolerations)
    return [_compared(ledger, cluster, verdict, alone.get(verdict.pod.uid)) for verdict in found]


def _others(ledger: Ledger, pods: Sequence[Pod]) -> list[str]:
    """Everybody else who holds or wants anything, but for the members of the same groups."""
    uids = {pod.uid for pod in pods}
    groups = {pod.group_key for pod in pods if pod.group_key}
    return [
        entry.pod.uid
        for entry in ledger.entries()
        if entry.pod.uid not in uids and entry.pod.group_key not in groups
    ]


def _compared(ledger: Ledger, cluster: EmptyCluster, verdict: Verdict, alone: Verdict | None) -> Verdict:
    if verdict.runs or alone is None or alone.runs or alone.seat.pool:
        return verdict
    entry = ledger.entry(verdict.pod.uid)
    beyond = cluster.beyond(entry) if entry is not None else None
    if beyond is not None:
        never = beyond.why
    else:
        why = alone.hold.why if alone.hold is not None else alone.apart
        never = why.message if why is not None else alone.seat.problem
    return replace(verdict, never=never)


def _decided(
    ledger: Ledger, pods: Sequence[Pod], tolerations: Mapping[str, Tolerations], *, empty: bool = False
) -> list[Verdict]:
    """With everybody lifted who can be; the room goes to those who were let in before. `empty`: as if nobody were on any node, and all of them took pods."""
    lifts: dict[str, Lift] = {}
    holds: dict[str, Hold] = {}
    for one in decisions(ledger, Planner(ledger)):
        holds.pop(one.pod.uid, None)
        if isinstance(one, Lift):
            lifts[one.pod.uid] = one
        else:
            holds[one.pod.uid] = one
    cards = {uid: lift.assigned for uid, lift in lifts.items()}
    apart = {pod.uid: why for pod in pods if pod.uid not in holds and (why := _apart(ledger, pod))}
    before = reserved(ledger, tolerations, besides=[pod.uid for pod in pods])
    new = [
        Seeker(
            lifts[pod.uid].lifted if pod.uid in lifts else pod,
            frozenset(cards[pod.uid]) if pod.uid in cards else _held_by(ledger, pod),
            tolerations.get(pod.uid, ()),
            lifts[pod.uid].requirement if pod.uid in lifts else NodeRequirement(),
        )
        for pod in pods
        if pod.uid not in holds and pod.uid not in apart and not pod.bound
    ]
    where = seats(Nodes(ledger, empty=empty), before, new)
    found = {pod.uid: _own_node(ledger, pod) for pod in pods if pod.bound}
    found |= {seeker.pod.uid: seat for seeker, seat in zip(new, where, strict=True)}
    return [
        replace(
            _verdict(ledger, pod, cards.get(pod.uid, {}), holds.get(pod.uid), found.get(pod.uid, Seat())),
            apart=apart.get(pod.uid),
        )
        for pod in pods
    ]


def _own_node(ledger: Ledger, pod: Pod) -> Seat:
    """Of a pod that names its node itself: it is among those there, and no scheduler looks for another one."""
    there = pod.node_name in ledger.nodes
    return Seat(pod.node_name) if there else Seat(problem=f"there is no node {pod.node_name}")


def _apart(ledger: Ledger, pod: Pod) -> Refusal | None:
    """Of a pod that is not in the books: why its scheduler would not start it, with everybody let in who can be."""
    if pod.bound or ledger.entry(pod.uid) is not None:
        return None
    gates = ledger.stages.other_gates(pod)
    return held_by_others(gates) if gates else _unfinished(ledger, pod)


def _unfinished(ledger: Ledger, pod: Pod) -> Refusal | None:
    """What the PodGroup of a pod lacks to start.

    Schedulers that know such groups start none of its members before; to others it is a pod like any.
    """
    group = ledger.group(pod.group_key) if pod.group_key else None
    if group is None or not group.stored:
        return None
    if not group.kubernetes and pod.scheduler_name not in ledger.settings.volcano.scheduler_names:
        return None
    lacks = ledger.groups.lacks(group.key)
    text = f"{group.title} starts as a whole, and still lacks {counted(lacks, 'member')}"
    return Refusal(reasons.GANG_INCOMPLETE, text) if lacks else None


def _held_by(ledger: Ledger, pod: Pod) -> frozenset[str]:
    """The cards of a pod that was let in before; none of one that asks for nothing."""
    entry = ledger.entry(pod.uid)
    return cards_of(entry) if entry is not None else frozenset()


def _verdict(ledger: Ledger, pod: Pod, cards: Mapping[str, int], hold: Hold | None, seat: Seat) -> Verdict:
    if hold is not None:
        return Verdict(pod, hold.queue, {}, hold, Seat())
    entry = ledger.entry(pod.uid)
    return Verdict(pod, entry.queue if entry is not None else "", cards, None, seat)
