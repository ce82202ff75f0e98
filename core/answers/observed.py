"""What the leader itself can say of one pod: from its books as they are, without trying anything.

The books are in use meanwhile, so nothing is assumed on them and nothing taken back, and the work gives way to others.
"""

from collections.abc import Mapping
from typing import Final

from core.answers.beyond import Reach
from core.answers.explain import STANDS, Explanation, blamed, together
from core.answers.holders import holders_in_steps, holders_on_nodes_in_steps
from core.answers.ill_labelled import ill_labelled_in_steps
from core.answers.line import place_among, unit_among
from core.answers.shortage import counted, shortest_for
from core.answers.stock import stock_in_steps
from core.answers.way_out import besides, way_out
from core.plan.decision import Hold
from core.plan.units import units_of
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Steps

MOST: Final = 10
"""So many of those before it in line, and of those who hold the quota, are told one by one."""


def observed(ledger: Ledger, uid: str, holds: Mapping[str, Hold]) -> Steps[Explanation | None]:
    """All about one pod but what would help; None when it asks for nothing of ours, or is gone in the end.

    `holds` is what the last passes said, by UID: that of a pod that was not come to yet is not among them.
    """
    entry = ledger.entry(uid)
    if entry is None:
        return None
    units = (yield from units_of(ledger, entry.queue)) if entry.stage is Stage.WAITING else []
    stock = yield from stock_in_steps(ledger, entry)
    waiting = entry.stage is Stage.WAITING
    ill = (yield from ill_labelled_in_steps(ledger, entry.pod)) if waiting else []
    beyond = yield from Reach(ledger).beyond_in_steps(entry)
    entry = ledger.entry(uid)
    if entry is None:
        return None
    waits = entry.stage is Stage.WAITING
    hold = holds.get(uid) if waits else None
    members = together(unit_among(units, entry), entry)
    figures = shortest_for(ledger, members) if waits and entry.queue in ledger.queues else []
    place = place_among(ledger, units, entry, holds, MOST)
    blame = blamed(entry, hold, figures)
    holders = []
    if blame.keys:
        holders = yield from holders_in_steps(ledger, blame.queue, blame.keys)
    elif blame.cards:
        holders = yield from holders_on_nodes_in_steps(ledger, blame.cards)
    return Explanation(
        entry=entry,
        source=ledger.queue_source(entry.pod),
        counted=counted(ledger, entry),
        decision=STANDS[entry.stage],
        hold=hold,
        place=place,
        together=len(members),
        figures=tuple(figures),
        holders=tuple(holders),
        stock=tuple(stock),
        beyond_nodes=beyond,
        ill_labelled=tuple(ill),
        way_out=way_out(ledger, entry, hold),
        besides=besides(ledger, entry, hold),
        remedies=(),
        all_tried=False,
    )
