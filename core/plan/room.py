"""Whether some node has room for an mGPU pod, so that only pods that can be bound are lifted.

A bind that is denied does not move the pod to another node: the scheduler tries the same one again, once a second.
So an mGPU pod is lifted only while a node fits it whole, with every pod counted that is bound there, about to be
bound, or lifted before it. The last have no node yet; each is put on a node for this count alone.
"""

from collections.abc import Collection, Container
from operator import attrgetter
from typing import Final

from core import reasons
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import Unfit, fits
from core.objects.node_rules import NodeRules
from core.plan.admitted import AdmittedNodes
from core.plan.changed import ChangedNodes
from core.plan.recent import Recent
from core.plan.share_nodes import Kind, ShareNodes
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.shortfall import Shortfall
from core.steps import Steps

_CLOSENESS = (reasons.MGPU_NO_ROOM, reasons.MGPU_TOO_FEW_CARDS, reasons.MGPU_POLICY_MISMATCH)
"""Which node's reason is told: the one that comes closest to fitting."""

_JUDGED: Final = 50_000
"""Answers about kinds of nodes that are kept."""
_REFUSED: Final = 10_000
"""Refusals that are kept."""

_Wish = tuple[MgpuAsk, NodeRules]
"""What a pod asks, and its own rules about nodes."""


class ShareRoom:
    """The room for mGPU pods, brought up to date with each question.

    The cost of a change is that of the nodes it touches; a question costs as much as there are kinds of nodes, and
    next to nothing where the like has been refused since room was last freed.

    Only one question is under way at a time. The ledger may change at every step of it, and the answer is right when it is
    given; a question that is given up halfway leaves the rest of the work to the next one.
    """

    def __init__(self, ledger: Ledger, admitted: AdmittedNodes) -> None:
        self._ledger = ledger
        self._admitted = admitted
        self._nodes = ShareNodes(ledger)
        self._changed = ChangedNodes(ledger, self._nodes.known, ledger.nodes)
        self._seen = (-1, -1)
        self._evicted: dict[str, dict[str, None]] = {}
        """The lifted pods whose node is counted anew and who are to be put there again, by that node."""
        self._homeless: dict[str, None] = {}
        """The lifted pods that are to be put on any node, in their order."""
        self._refused: dict[_Wish, str] = {}
        self._judged: Recent[MgpuAsk, dict[Kind, Unfit | None]] = Recent(lambda _: {}, _JUDGED)

    def shortfall(self, rules: NodeRules, ask: MgpuAsk, queue: str) -> Steps[Shortfall | None]:
        """None when a ready node that the rules admit has room; else why the closest one has not."""
        refusal = yield from self._refusal(rules, ask)
        if not refusal:
            return None
        return Shortfall(
            reasons.NO_FREE_CARD, f"Queue <{queue}> lets the pod in, but no node has room; {refusal}"
        )

    def _refusal(self, rules: NodeRules, ask: MgpuAsk) -> Steps[str]:
        """Why no node has room, empty when one has."""
        while True:
            yield from self._refresh()
            known = self._refused.get((ask, rules))
            if known is not None:
                return known
            admitted = yield from self._admitted.admitted(rules, self._nodes.open)
            judged = yield from self._judge(ask)
            # What was found out stays known, so the next round has only to follow what has changed meanwhile.
            if self._is_current():
                return self._closest((ask, rules), judged, admitted)

    def _judge(self, ask: MgpuAsk) -> Steps[dict[Kind, Unfit | None]]:
        """Why the pod does not fit each kind of nodes, None where it does."""
        judged, kinds = self._judged[ask], self._nodes.kinds
        for kind in [kind for kind in kinds if kind not in judged]:
            judged[kind] = fits(ask, kind.model, kind.state, self._ledger.settings)
            yield
        if len(judged) > 2 * len(kinds):
            for kind in judged.keys() - set(kinds):
                del judged[kind]
        return judged

    def _closest(self, wish: _Wish, judged: dict[Kind, Unfit | None], admitted: Container[str]) -> str:
        """Why no node has room, empty when one has. Of nodes that are equally close the first name is told."""
        closest = (len(_CLOSENESS), "", "no node serves mGPU shares to this pod")
        for kind in self._nodes.kinds:
            unfit = judged[kind]
            if unfit is None:
                if any(name in admitted for name in kind.nodes):
                    return ""
                continue
            distance = _CLOSENESS.index(unfit.code)
            if distance <= closest[0]:
                name = min((name for name in kind.nodes if name in admitted), default="")
                closest = min(closest, (distance, name, f"node {name}: {unfit.message}")) if name else closest
        if len(self._refused) >= _REFUSED:
            self._refused.clear()
        self._refused[wish] = closest[2]
        return closest[2]

    # -- keeping up with the ledger ----------------------------------------------------------------------------

    def _is_current(self) -> bool:
        return not (self._changed or self._evicted or self._homeless) and self._seen == self._now()

    def _now(self) -> tuple[int, int]:
        return self._ledger.occupants.changes, self._ledger.reserved_shares_changes

    def _refresh(self) -> Steps[None]:
        """Brings the rooms up to date; costs next to nothing while nothing has changed."""
        while not self._is_current():
            self._take_note()
            if self._changed:
                name = self._changed.next()
                self._changed.done(name)
                self._evict(name, self._nodes.recount(name))
            elif self._evicted:
                yield from self._put_back(next(iter(self._evicted)))
            elif self._homeless:
                yield from self._place(next(iter(self._homeless)))
            yield

    def _take_note(self) -> None:
        """Notices which lifted pods have come or gone, and forgets the refusals where room was freed."""
        seen, self._seen = self._seen, self._now()
        if seen == self._seen:
            return
        reserved, expected = self._ledger.reserved_shares, self._nodes.expected
        gone = expected.keys() - reserved.keys()
        if gone or seen[0] != self._seen[0]:
            # Else there are only more pods that are lifted, and they take room away.
            self._refused.clear()
        for name in {expected[uid]: None for uid in gone}:
            self._evict(name, self._nodes.clear(name))
        waiting = {uid for evicted in self._evicted.values() for uid in evicted}
        new = [reserved[uid] for uid in reserved.keys() - expected.keys() - waiting]
        self._homeless = {entry.pod.uid: None for entry in sorted(new, key=attrgetter("order"))}

    def _evict(self, name: str, uids: Collection[str]) -> None:
        if uids:
            self._evicted[name] = dict.fromkeys(uids) | self._evicted.get(name, {})

    def _put_back(self, name: str) -> Steps[None]:
        """Expects the first of those who were evicted from a node there again; else it looks for another one."""
        uid = next(iter(self._evicted[name]))
        entry = self._ledger.reserved_shares.get(uid)
        fitting = False
        if entry is not None:
            admitted = yield from self._admitted.admitted(entry.pod.node_rules, (name,))
            fitting = name in admitted
        del self._evicted[name][uid]
        if not self._evicted[name]:
            del self._evicted[name]
        if entry is not None and not (fitting and self._nodes.put(entry, name)):
            self._homeless[uid] = None

    def _place(self, uid: str) -> Steps[None]:
        """Expects a lifted pod on some node that fits; one that fits nowhere any more takes no room."""
        entry = self._ledger.reserved_shares.get(uid)
        if entry is not None and entry.demand.mgpu is not None:
            yield from self._find_node(entry, (entry.demand.mgpu, entry.pod.node_rules))
        del self._homeless[uid]

    def _find_node(self, entry: Entry, wish: _Wish) -> Steps[None]:
        if wish in self._refused:
            return
        ask, rules = wish
        admitted = yield from self._admitted.admitted(rules, self._nodes.open)
        judged = yield from self._judge(ask)
        for kind in [kind for kind in self._nodes.kinds if judged[kind] is None]:
            name = next((name for name in kind.nodes if name in admitted), "")
            if name and self._nodes.put(entry, name):
                return
            yield
        self._closest(wish, judged, admitted)
