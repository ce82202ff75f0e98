"""Why one pod waits: all that there is to say of it, gathered from the books and from the passes over them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.answers.beyond import Beyond
from core.answers.empty_cluster import EmptyCluster
from core.answers.ending import ROOM, end_pods, leave_line
from core.answers.holders import Holder, holders_of, holders_on_nodes
from core.answers.ill_labelled import IllLabelled, ill_labelled
from core.answers.line import Place, place_of, unit_of
from core.answers.mending import (
    correct_card,
    correct_queue,
    mend_group,
    mend_queue,
    name_another_card,
    take_gates,
)
from core.answers.mending_nodes import mend_nodes
from core.answers.raising import QUOTA, raise_quota
from core.answers.remedy import Case, Finder, Remedy, remedies
from core.answers.shortage import Figure, counted, shortest_for, shortest_level
from core.answers.stock import Stock, stock_of
from core.answers.way_out import besides, way_out
from core.answers.whatif import Change, WhatIf
from core.objects.taints import Tolerations
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import decisions
from core.plan.units import Unit, units_of
from core.queues.amounts import CPU, MEMORY
from core.queues.attribution import Source
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import finish

_MENDS: Final[tuple[Finder, ...]] = (take_gates, mend_queue, mend_group, correct_card)

ROUTES: Final[Mapping[str, tuple[Finder, ...]]] = {
    "card": (*_MENDS, name_another_card),
    "queue": (correct_queue, *_MENDS, raise_quota, end_pods),
    "raise": (*_MENDS, raise_quota, end_pods),
    "end": (*_MENDS, end_pods),
    "node": (*_MENDS, mend_nodes, raise_quota),
    "line": (leave_line, *_MENDS, raise_quota, end_pods),
}
"""Ways to a lift: what stands in the way on each is taken away by the first of its means that can."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One pod. Amounts in thousandths; what does not apply is empty."""

    entry: Entry
    source: Source
    counted: Mapping[str, int]
    decision: str
    """`hold`, `lift` (by the next pass), `reserved`, `allocated` or `ignored`."""
    hold: Hold | None
    place: Place | None
    together: int
    """How many members have to be let in at once; 1 for a pod by itself."""
    figures: tuple[Figure, ...]
    holders: tuple[Holder, ...]
    stock: tuple[Stock, ...]
    beyond_nodes: Beyond | None
    """Set where no node could ever run the pod."""
    ill_labelled: tuple[IllLabelled, ...]
    """Of a pod that waits."""
    way_out: str
    """What is told with the reason, for whom nothing that was tried would help; empty for one that does not wait."""
    besides: str
    """What would help besides and cannot be tried; empty where there is no such thing."""
    remedies: tuple[Remedy, ...]
    all_tried: bool
    """Whether everything was tried that might help."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Keys of the quota of a queue, the pod's own or one above it, or cards on nodes, that others hold."""

    queue: str = ""
    keys: frozenset[str] = frozenset()
    cards: frozenset[str] = frozenset()


STANDS: Final = {
    Stage.RESERVED: "reserved",
    Stage.ALLOCATED: "allocated",
    Stage.WAITING: "hold",
    Stage.IGNORED: "ignored",
}
"""How a pod stands before anything is decided."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a pod stands, and where it comes in line."""

    decision: str
    rank: tuple[int, str]


def standings(ledger: Ledger, uids: Collection[str]) -> dict[str, Standing]:
    """How each of these pods stands once everybody is lifted who can be. The books are as they were afterwards."""
    whatif = WhatIf(ledger)
    with whatif.made(Change.none()):
        lifted = {one.pod.uid for one in decisions(ledger, Planner(ledger)) if isinstance(one, Lift)}
        queues = {entry.queue for uid in uids if (entry := ledger.entry(uid)) is not None}
        line = [
            one
            for queue in sorted(queues)
            for unit in finish(units_of(ledger, queue))
            for one in unit.entries
        ]
        places = {one.pod.uid: number for number, one in enumerate(line)}
    found = {}
    for uid in uids:
        entry = ledger.entry(uid)
        stage = STANDS[entry.stage] if entry is not None else "ignored"
        found[uid] = Standing("lift" if uid in lifted else stage, (places.get(uid, -1), uid))
    return found


def explain(ledger: Ledger, uid: str, tolerations: Mapping[str, Tolerations]) -> Explanation | None:
    """All about one pod; None when it asks for nothing of ours. `tolerations` of whoever has no node, by UID.

    The books are as they were afterwards.
    """
    whatif = WhatIf(ledger)
    entry = ledger.entry(uid)
    if entry is None:
        return None
    decision = STANDS[entry.stage]
    holds: dict[str, Hold] = {}
    with whatif.made(Change.none()):
        for one in decisions(ledger, Planner(ledger)):
            holds.pop(one.pod.uid, None)
            if isinstance(one, Hold):
                holds[one.pod.uid] = one
            elif one.pod.uid == uid:
                decision = "lift"
        now = ledger.entry(uid) or entry
        place = place_of(ledger, now, holds)
        members = _together(ledger, now)
        there = now.queue in ledger.queues and now.stage is Stage.WAITING
        figures = tuple(shortest_for(ledger, members if there else []))
        hold = holds.get(uid)
        holders = tuple(_holders(ledger, now, hold, figures))
        stock = tuple(stock_of(ledger, now))
    beyond = EmptyCluster(ledger, tolerations).beyond(entry)
    found, complete = ([], True) if hold is None else remedies(Case(whatif, entry, hold, tolerations), ROUTES)
    return Explanation(
        entry=entry,
        source=ledger.queue_source(entry.pod),
        counted=counted(ledger, entry),
        decision=decision,
        hold=hold,
        place=place,
        together=len(members),
        figures=figures,
        holders=holders,
        stock=stock,
        beyond_nodes=beyond,
        ill_labelled=tuple(ill_labelled(ledger, entry.pod)) if hold is not None else (),
        way_out=way_out(ledger, entry, hold),
        besides=besides(ledger, entry, hold),
        remedies=tuple(found),
        all_tried=complete,
    )


def _together(ledger: Ledger, entry: Entry) -> list[Entry]:
    return together(unit_of(ledger, entry), entry)


def together(unit: Unit | None, entry: Entry) -> list[Entry]:
    """The members of a unit that have to be let in at once, or the pod alone."""
    if unit is None or not unit.lacks_members or unit.progress is None:
        return [entry]
    wanted = max(unit.progress.missing, sum(unit.progress.missing_tasks.values()))
    return list(unit.entries)[:wanted] or [entry]


def blamed(entry: Entry, hold: Hold | None, figures: Collection[Figure]) -> Blame:
    """Who keeps it from the pod: the queue's pods where its quota is short, those of the nodes where they have no room.

    For any other reason nobody is to blame.
    """
    if hold is None:
        return Blame()
    if hold.why.code in QUOTA | {reasons.GANG_INCOMPLETE} and any(figure.missing for figure in figures):
        keys = {figure.key for figure in figures if figure.limit is not None}
        short = {CPU, MEMORY} & {figure.key for figure in figures if figure.missing}
        level = shortest_level(entry.queue, list(figures))
        return Blame(level, keys=frozenset(short or keys - {CPU, MEMORY}))
    asked = entry.demand.card
    if asked is None or hold.why.code not in ROOM:
        return Blame()
    return Blame(cards=frozenset(asked.alternatives))


def _holders(ledger: Ledger, entry: Entry, hold: Hold | None, figures: Collection[Figure]) -> list[Holder]:
    blame = blamed(entry, hold, figures)
    if blame.keys:
        return holders_of(ledger, blame.queue, blame.keys)
    return holders_on_nodes(ledger, blame.cards) if blame.cards else []
