"""Why one pod waits: all that there is to say of it, gathered from the books and from the passes over them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.answers.beyond import Beyond, EmptyCluster, Reach
from core.answers.ending import ROOM, end_pods, leave_line
from core.answers.holders import Holder, holders_of, holders_on_nodes
from core.answers.line import Place, place_of
from core.answers.mending import (
    correct_card,
    correct_queue,
    mend_group,
    mend_queue,
    name_another_card,
    take_gates,
)
from core.answers.mending_nodes import IllLabelled, ill_labelled, mend_nodes
from core.answers.raising import QUOTA, raise_quota
from core.answers.remedy import Case, Finder, Remedy, remedies
from core.answers.shortage import Figure, counted, shortest_for, shortest_level
from core.answers.stock import Stock, stock_of
from core.answers.whatif import Change, WhatIf
from core.cards.expression import is_excessive, split
from core.objects.taints import Tolerations
from core.plan.decision import Hold
from core.plan.units import Unit, let_go_of, units_of
from core.queues.amounts import CPU, MEMORY
from core.queues.attribution import Source
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Steps, finish, let_go

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
STANDS: Final = {
    Stage.RESERVED: "reserved",
    Stage.ALLOCATED: "allocated",
    Stage.WAITING: "hold",
    Stage.IGNORED: "ignored",
}
"""How a pod stands before anything is decided."""
MOST: Final = 10
"""So many of those before it in line, and of those who hold the quota, are told one by one."""
_FREED_IN_A_STEP: Final = 500
_NOWHERE: Final = frozenset({reasons.GET_TASK_REQUEST_RESOURCE_FAILED, reasons.NO_FREE_CARD})


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
    holders: list[Holder]
    """The largest first; there may be very many, see `let_go_of_holders`."""
    stock: tuple[Stock, ...]
    beyond_nodes: Beyond | None
    """Set where no node could ever run the pod."""
    ill_labelled: tuple[IllLabelled, ...]
    """Of a pod that waits."""
    way_out: str
    """What is told with the reason, for whom nothing that was tried would help; empty for one that does not wait."""
    besides: str
    """What would help besides and cannot be tried; empty where there is no such thing."""
    remedies: tuple[Remedy, ...] = ()
    all_tried: bool = False
    """Whether everything was tried that might help."""


@dataclass(frozen=True, slots=True)
class _Blame:
    """Keys of the quota of a queue, the pod's own or one above it, or cards on nodes, that others hold."""

    queue: str = ""
    keys: frozenset[str] = frozenset()
    cards: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Standing:
    """How a pod stands, and where it comes in line."""

    decision: str
    rank: tuple[int, str]


def standings(ledger: Ledger, uids: Collection[str]) -> dict[str, Standing]:
    """How each of these pods stands once everybody is lifted who can be. The books are as they were afterwards."""
    whatif = WhatIf(ledger)
    with whatif.made(Change.none()):
        whatif.decide()
        after = {uid: ledger.entry(uid) for uid in uids}
        queues = {entry.queue for entry in after.values() if entry is not None}
        line = [
            one
            for queue in sorted(queues)
            for unit in finish(units_of(ledger, queue))
            for one in unit.entries
        ]
        places = {one.pod.uid: number for number, one in enumerate(line)}
    return {
        uid: Standing(_decision(ledger.entry(uid), now), (places.get(uid, -1), uid))
        for uid, now in after.items()
    }


def _decision(before: Entry | None, after: Entry | None) -> str:
    """How a pod stands, or that it is lifted, by what the books have of it before and after a pass."""
    if before is None:
        return "ignored"
    lifted = before.stage is Stage.WAITING and after is not None and after.stage is not Stage.WAITING
    return "lift" if lifted else STANDS[before.stage]


def explain(ledger: Ledger, uid: str, tolerations: Mapping[str, Tolerations]) -> Explanation | None:
    """All about one pod; None when it asks for nothing of ours. `tolerations` of whoever has no node, by UID.

    The books are as they were afterwards.
    """
    whatif = WhatIf(ledger)
    entry = ledger.entry(uid)
    if entry is None:
        return None
    with whatif.made(Change.none()):
        holds = whatif.decide()
        now = ledger.entry(uid) or entry
        units = finish(units_of(ledger, now.queue))
        place, unit = finish(place_of(ledger, units, now, holds))
        members = _together(unit, now)
        there = now.queue in ledger.queues and now.stage is Stage.WAITING
        figures = finish(shortest_for(ledger, members if there else []))
        hold = holds.get(uid)
        holders = finish(_holders(ledger, _blamed(now, hold, figures)))
        stock = finish(stock_of(ledger, now))
    beyond = EmptyCluster(ledger, tolerations).beyond(entry)
    found, complete = ([], True) if hold is None else remedies(Case(whatif, entry, hold, tolerations), ROUTES)
    return Explanation(
        entry=entry,
        source=ledger.queue_source(entry.pod),
        counted=counted(ledger, entry),
        decision=_decision(entry, now),
        hold=hold,
        place=place,
        together=len(members),
        figures=tuple(figures),
        holders=holders,
        stock=tuple(stock),
        beyond_nodes=beyond,
        ill_labelled=tuple(finish(ill_labelled(ledger, entry.pod))) if hold is not None else (),
        way_out=way_out(ledger, entry, hold),
        besides=besides(ledger, entry, hold),
        remedies=tuple(found),
        all_tried=complete,
    )


def _together(unit: Unit | None, entry: Entry) -> list[Entry]:
    """The members of a unit that have to be let in at once, or the pod alone."""
    if unit is None or not unit.lacks_members or unit.progress is None:
        return [entry]
    wanted = max(unit.progress.missing, sum(unit.progress.missing_tasks.values()))
    return [*unit.entries[:wanted]] or [entry]


def _blamed(entry: Entry, hold: Hold | None, figures: Collection[Figure]) -> _Blame:
    """Who keeps it from the pod: the queue's pods where its quota is short, those of the nodes where they have no room.

    For any other reason nobody is to blame.
    """
    if hold is None:
        return _Blame()
    if hold.why.code in QUOTA | {reasons.GANG_INCOMPLETE} and any(figure.missing for figure in figures):
        keys = {figure.key for figure in figures if figure.limit is not None}
        short = {CPU, MEMORY} & {figure.key for figure in figures if figure.missing}
        level = shortest_level(entry.queue, list(figures))
        return _Blame(level, keys=frozenset(short or keys - {CPU, MEMORY}))
    asked = entry.demand.card
    if asked is None or hold.why.code not in ROOM:
        return _Blame()
    return _Blame(cards=frozenset(asked.alternatives))


def _holders(ledger: Ledger, blame: _Blame) -> Steps[list[Holder]]:
    if blame.keys:
        return (yield from holders_of(ledger, blame.queue, blame.keys))
    return (yield from holders_on_nodes(ledger, blame.cards)) if blame.cards else []


def observed(ledger: Ledger, uid: str, holds: Mapping[str, Hold]) -> Steps[Explanation | None]:
    """What the leader itself can say: all about one pod but what would help, from its books as they are; nothing is tried.

    The books are in use meanwhile, so nothing is assumed on them and nothing taken back, and the work gives way to others.
    None when the pod asks for nothing of ours, or is gone in the end.
    `holds` is what the last passes said, by UID: that of a pod that was not come to yet is not among them.
    """
    entry = ledger.entry(uid)
    if entry is None:
        return None
    waiting = entry.stage is Stage.WAITING
    place, unit = (yield from _in_line(ledger, entry, holds)) if waiting else (None, None)
    stock = yield from stock_of(ledger, entry)
    ill = (yield from ill_labelled(ledger, entry.pod)) if waiting else []
    beyond = yield from Reach(ledger).beyond(entry)
    entry = ledger.entry(uid)
    if entry is None:
        return None
    waits = entry.stage is Stage.WAITING
    hold = holds.get(uid) if waits else None
    members = _together(unit, entry)
    there = waits and entry.queue in ledger.queues
    figures = yield from shortest_for(ledger, members if there else [])
    holders = yield from _holders(ledger, _blamed(entry, hold, figures))
    return Explanation(
        entry=entry,
        source=ledger.queue_source(entry.pod),
        counted=counted(ledger, entry),
        decision=STANDS[entry.stage],
        hold=hold,
        place=place if waits else None,
        together=len(members),
        figures=tuple(figures),
        holders=holders,
        stock=tuple(stock),
        beyond_nodes=beyond,
        ill_labelled=tuple(ill),
        way_out=way_out(ledger, entry, hold),
        besides=besides(ledger, entry, hold),
    )


def _in_line(
    ledger: Ledger, entry: Entry, holds: Mapping[str, Hold]
) -> Steps[tuple[Place | None, Unit | None]]:
    units = yield from units_of(ledger, entry.queue)
    found = yield from place_of(ledger, units, entry, holds, MOST)
    yield from let_go_of(units)
    return found


def let_go_of_holders(found: Explanation) -> Steps[None]:
    """Frees them in steps, once they have been told: to forget very many of them in one piece takes long."""
    return let_go(found.holders, _FREED_IN_A_STEP)


def way_out(ledger: Ledger, entry: Entry, hold: Hold | None) -> str:
    """By the catalogue, unless the pod itself tells more than its reason; empty for one that does not wait."""
    if hold is None:
        return ""
    if hold.why.code != reasons.GET_TASK_REQUEST_RESOURCE_FAILED or hold.behind is not None:
        return hold.why.remedy
    cards = entry.pod.card_name
    if not cards or is_excessive(cards):
        return "make the pod anew, without what the message names"
    resources = frozenset[str]().union(*map(ledger.inventory.resources_of, split(cards)))
    if not resources:
        return f"name a card that the nodes carry (`cardquota cards` lists them), or wait for a node with {cards}"
    if resources.isdisjoint((*entry.pod.limits, *entry.pod.requests)):
        return f"make the pod anew, with limits for {min(resources)}"
    return "make the pod anew, without what the message names"


def besides(ledger: Ledger, entry: Entry, hold: Hold | None) -> str:
    """What else helps who names a card that is nowhere, and has quota for it: that card, which no change of objects makes."""
    if hold is None or hold.behind is not None or is_excessive(entry.pod.card_name):
        return ""
    limits, cards = ledger.limits.get(entry.queue), split(entry.pod.card_name)
    missing = [card for card in cards if limits is not None and limits.cards.get(card, 0) > 0]
    if hold.why.code not in _NOWHERE or not missing or any(map(ledger.inventory.nodes_with, cards)):
        return ""
    return (
        f"a node with {missing[0]}, for which queue {entry.queue} has quota; `cardquota cards` lists what the nodes show, and "
        "with cards.pools pods are let in for nodes that are still to come"
    )
