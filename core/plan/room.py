"""Whether some node has room for an mGPU pod, and to which nodes it is led: only pods that can be bound are lifted.

A bind that is denied does not move the pod to another node: the scheduler tries the same one again, once a second.
So an mGPU pod is lifted only while a node fits it whole, with every pod counted that is bound there, about to be
bound, or lifted before it; and it is narrowed to such nodes, on each of which its room is booked until it is bound. Of a pod
that schedulers judge by more than is followed here nobody knows which of them will do: it is narrowed to nodes of its kind,
and expected on one of them for the count alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final

from core import reasons
from core.affinity import NodeRequirement
from core.mgpu.ask import MgpuAsk
from core.mgpu.destination import booked_on, led_to, requirement
from core.mgpu.pieces import in_steps
from core.objects import Pod
from core.plan.admitted import AdmittedNodes
from core.plan.by_ask import ByAsk
from core.plan.changed import ChangedNodes
from core.plan.changed_shares import ChangedShares
from core.plan.homeless import Homeless
from core.plan.share_nodes import ShareNodes
from core.plan.share_search import Found, NoRoom, ShareSearch
from core.plan.wish import Wish, WishBesides
from core.queues.entry import Entry, ShareKey
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.steps import Pace, Steps

_NOTICED_IN_A_STEP: Final = 100
"""Lifted pods that have come, changed or gone."""

_OPEN: Final = frozenset[str]()

_NAMED: Final = 3
"""So many pods are named for whom the room is booked that another one lacks."""

_REFUSED: Final = 10_000
"""Refusals that are kept."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The node that a pod is led to, and how its node affinity says so."""

    node: str
    requirement: NodeRequirement
    displaces: bool = False
    """Whether its scheduler has to end pods of a lower priority there first."""


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
        self._search = ShareSearch(ledger, self._nodes)
        self._changed = ChangedNodes(ledger, self._nodes.known, ledger.nodes)
        self._seen = -1
        self._evicted: dict[str, dict[ShareKey, None]] = {}
        """The lifted pods whose node is counted anew and who are to be put there again, by that node."""
        self._leaving: set[ShareKey] = set()
        """Those of them that were led nowhere, so that no other node is looked for yet."""
        self._homeless = Homeless()
        """The lifted pods that are to be put where they were led to, or on any node, in their order."""
        self._stranded: dict[ShareKey, Entry] = {}
        """Those of them that were led to nodes of which none takes them now; they come up again when one of these changes."""
        self._shares = ChangedShares(ledger, (self._nodes.expected, self._stranded, self._homeless))
        self._refused: ByAsk[WishBesides, NoRoom] = ByAsk(_REFUSED)
        self._found: Found | None = None
        self._noticed = Pace(_NOTICED_IN_A_STEP)

    def shortfall(
        self,
        pod: Pod,
        ask: MgpuAsk,
        queue: str,
        within: tuple[str, ...] = (),
        closed: frozenset[str] = frozenset(),
    ) -> Steps[Refusal | None]:
        """None when a ready node has room that the pod's rules admit; else why the closest one has not.

        Of nodes `within` which it has to be, where such are named, no other one will do; and none with `closed` products.
        """
        refusal = yield from self._refusal(Wish.of(pod, ask, within, closed))
        if refusal is None:
            return None
        if refusal.way_out:
            why = f"no open node could hold it, were it empty; {refusal.why}; {refusal.way_out}"
        else:
            why = f"no node has room; {refusal.why}{self._booked(refusal.node, pod)}"
        return Refusal(reasons.NO_FREE_CARD, f"Queue <{queue}> lets the pod in, but {why}")

    def destination(self, entry: Entry, within: tuple[str, ...] = ()) -> Destination | None:
        """To which node the pod is led that was found last to have room; None where the scheduler has to find one.

        It has to for devices that no such node shows: a claim may serve them.
        """
        ask, pod = entry.demand.mgpu, entry.pod
        if ask is None or pod.ruled_elsewhere or self._ledger.settings.mgpu.lead_to == "kind":
            return None
        found = self._found_for(pod, ask, within)
        if not self._nodes.shows(found.node, found.wish):
            return None
        required = requirement(found.node, self._nodes.hostname(found.node))
        return Destination(found.node, required, found.displaces)

    def product(self, entry: Entry, within: tuple[str, ...] = ()) -> str:
        """The product that the node names that was found last for the pod; empty where it names none."""
        ask = entry.demand.mgpu
        if ask is None:
            return ""
        product = self._ledger.inventory.product_on(self._found_for(entry.pod, ask, within).node)
        return "" if product is None else product.name

    def _found_for(self, pod: Pod, ask: MgpuAsk, within: tuple[str, ...]) -> Found:
        found = self._found
        current = found is not None and found.changes == self._ledger.changes
        if found is None or not current or found.wish._replace(closed=_OPEN) != Wish.of(pod, ask, within):
            raise RuntimeError(f"pod {pod.key} was not asked about last")
        return found

    def _booked(self, node: str, but: Pod) -> str:
        """For whom there is room booked on a node, as the end of a refusal; other members of the pod's group aside."""
        others = [
            pod.key
            for pod in self._nodes.pods_expected(node)
            if not pod.group_key or pod.group_key != but.group_key
        ]
        if not others:
            return ""
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        return f"; room there is booked for {', '.join(others[:_NAMED])}{more}, on the way to a node"

    def _refusal(self, wish: Wish) -> Steps[NoRoom | None]:
        """Why no node has room, None when one has."""
        while True:
            yield from self._refresh()
            known = self._refused.about(wish.ask).get(wish.besides)
            if known is not None:
                return known
            admitted = yield from self._admitted.admitted(wish.rules, self._nodes.open)
            found = yield from self._search.find(wish, admitted)
            # What was found out stays known, so the next round has only to follow what has changed meanwhile.
            if self._is_current():
                self._found = found
                if found.refusal is not None:
                    self._refuse(wish, found.refusal)
                return found.refusal

    def _refuse(self, wish: Wish, why: NoRoom) -> None:
        self._refused.note(self._refused.about(wish.ask), wish.besides, why)

    # -- keeping up with the ledger ----------------------------------------------------------------------------

    def _is_current(self) -> bool:
        left = self._shares or self._changed or self._evicted or self._homeless
        return not left and self._seen == self._ledger.occupants.changes

    def _refresh(self) -> Steps[None]:
        """Brings the rooms up to date; costs next to nothing while nothing has changed."""
        while not self._is_current():
            if self._seen != self._ledger.occupants.changes:
                self._seen = self._ledger.occupants.changes
                self._room_freed()
            if self._shares:
                self._notice(self._shares.take())
                if not self._noticed.due():
                    continue
            elif self._changed:
                name = self._changed.next()
                evicted = yield from in_steps(partial(self._nodes.recount, name))
                self._changed.done(name)
                self._evict(name, evicted)
            elif self._evicted:
                yield from self._put_back(next(iter(self._evicted)))
            elif self._homeless:
                yield from self._place(self._homeless.next())
            yield

    def _room_freed(self) -> None:
        self._refused.clear()
        self._homeless.retry()

    def _notice(self, key: ShareKey) -> None:
        """A lifted pod has come, changed or gone."""
        entry, on = self._ledger.reserved_shares.get(key), self._nodes.expected.get(key)
        # Of one that is not what it was when its node did not take it nobody knows.
        if self._stranded.get(key) is not entry:
            self._stranded.pop(key, None)
        if entry is None:
            self._homeless.drop(key)
            if on is not None:
                # Else there are only more pods that are lifted, and they take room away.
                self._room_freed()
                for name in tuple(on):
                    self._evict(name, self._nodes.clear(name))
        elif on is None and key not in self._stranded and key not in self._leaving:
            self._homeless.put(entry)

    def _evict(self, name: str, keys: Collection[ShareKey]) -> None:
        """Has these looked at again who were expected on a node, and those who were led there and had no room."""
        # In their order, whoever was heard of first: each process that begins to lead has to come to the same.
        in_order = sorted(self._ledger.led_to(name).values(), key=attrgetter("order"))
        led = [entry.share_key for entry in in_order]
        # One that was nominated for it and had no room may be expected elsewhere by now.
        there = [key for key in led if key not in self._nodes.expected]
        evicted = dict.fromkeys((*keys, *there)) | self._evicted.get(name, {})
        if evicted:
            # What was promised goes before what is only counted.
            self._evicted[name] = dict.fromkeys(sorted(evicted, key=lambda key: not key[1]))
            self._leaving.update(key for key in evicted if not key[1])

    def _put_back(self, name: str) -> Steps[None]:
        """Expects the first of those who were evicted from a node there again; else it looks for another one."""
        key = next(iter(self._evicted[name]))
        entry = self._ledger.reserved_shares.get(key)
        back = entry is not None and (yield from self._put(entry, name))
        del self._evicted[name][key]
        self._leaving.discard(key)
        if not self._evicted[name]:
            del self._evicted[name]
        if entry is None or back:
            self._stranded.pop(key, None)
        elif led_to(entry.pod):
            self._strand(entry)
        else:
            self._homeless.put(entry)

    def _place(self, key: ShareKey) -> Steps[None]:
        """Expects a lifted pod where its room is booked, else, if it may go there, on some node that fits.

        One that fits nowhere takes no room.
        """
        entry = self._ledger.reserved_shares.get(key)
        nodes: Sequence[str] = () if entry is None else booked_on(entry.pod)
        for name in nodes:
            if entry is not None:
                yield from self._put(entry, name)
                yield
        if entry is not None and led_to(entry.pod):
            self._strand(entry)
        elif entry is not None and entry.demand.mgpu is not None and key not in self._nodes.expected:
            yield from self._find_node(entry, Wish.of(entry.pod, entry.demand.mgpu))
        self._homeless.done(key)

    def _strand(self, entry: Entry) -> None:
        if entry.share_key not in self._nodes.expected:
            self._stranded[entry.share_key] = entry

    def _put(self, entry: Entry, name: str) -> Steps[bool]:
        """Expects a pod on this node, if its rules admit it and there is room; whether it is expected there."""
        if name in self._nodes.expected.get(entry.share_key, ()):
            return True
        admitted = yield from self._admitted.admitted(entry.pod.node_rules, (name,))
        if name not in admitted or not (yield from in_steps(partial(self._nodes.put, entry, name))):
            return False
        self._stranded.pop(entry.share_key, None)
        return True

    def _find_node(self, entry: Entry, wish: Wish) -> Steps[None]:
        if wish.besides not in self._refused.about(wish.ask):
            admitted = yield from self._admitted.admitted(wish.rules, self._nodes.open)
            found = yield from self._search.find(wish, admitted)
            fits = found.refusal is None
            if fits and (yield from in_steps(partial(self._nodes.put, entry, found.node))):
                self._homeless.retry_wish(wish)
                return
            if found.refusal is not None:
                self._refuse(wish, found.refusal)
        self._homeless.wait(entry, wish)
