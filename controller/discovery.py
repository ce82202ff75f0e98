"""What is odd about the cards of the nodes, for whoever looks after them: in the log, as numbers, and as events on nodes."""

import asyncio
import logging
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from controller.announcements import Announcements
from controller.caches import Caches
from core import reasons
from core.cards.inventory import Inventory
from core.objects import Node
from kube.workqueue import WorkQueue

_LOG = logging.getLogger(__name__)

SETTLE_S: Final = 15.0
"""How long a node has to stay as it is before that is said of it: labeller and device plugin do not start together."""

_AT_ONCE: Final = 500
"""So many nodes are gone through before others come to their turn."""

_ALARMS: Final = (reasons.ACCELERATOR_WITHOUT_CARD, reasons.CARD_LABELS_CONTRADICT)


class DiscoveryLog:
    """Follows the nodes behind the inventory.

    Each remark is logged once, with the first node that it is about, since whole fleets are labelled alike;
    `cardquota cards` lists them all.
    """

    def __init__(self, inventory: Inventory, registry: CollectorRegistry) -> None:
        self._inventory = inventory
        self._said: set[str] = set()
        self._odd: set[str] = set()
        self._alarming: dict[str, set[str]] = {reason: set() for reason in _ALARMS}
        alarms = Gauge(
            "cardquota_node_card_alarms",
            "Nodes that offer accelerators without a card, or whose labels contradict what they offer, by reason.",
            ["reason"],
            registry=registry,
        )
        for reason, nodes in self._alarming.items():
            alarms.labels(reason).set_function(partial(len, nodes))
        Gauge(
            "cardquota_card_conflicts",
            "Cards that nodes show under different resources.",
            registry=registry,
        ).set_function(lambda: len(inventory.conflicts))
        Gauge(
            "cardquota_nodes_with_remarks",
            "Nodes with labels or resources that discovery passed over.",
            registry=registry,
        ).set_function(lambda: len(self._odd))

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """Takes note of a node that the inventory has taken in, or dropped."""
        if new is None:
            for names in (self._odd, *self._alarming.values()):
                names.discard(old.name if old is not None else "")
            return
        found = {alarm.reason for alarm in self._inventory.alarms(new.name)}
        for reason, names in self._alarming.items():
            (names.add if reason in found else names.discard)(new.name)
        notes = self._inventory.notes(new.name)
        (self._odd.add if notes else self._odd.discard)(new.name)
        for note in (*notes, *self._inventory.conflict_notes()):
            if note not in self._said:
                self._said.add(note)
                _LOG.warning("cards that do not add up", extra={"node": new.name, "remark": note})


class NodeWatch:
    """The leader's watch over nodes on which something costs somebody cards: says so on the node, once."""

    def __init__(self, caches: Caches, announcements: Announcements, settle_s: float = SETTLE_S) -> None:
        self._caches = caches
        self._announcements = announcements
        self._settle_s = settle_s
        self._looks: WorkQueue[str] = WorkQueue(self._look, slots=1)
        self._leading = False
        caches.nodes.subscribe(self._node_changed)

    async def run(self) -> None:
        """Watches until cancelled; what is wrong already is looked at like what goes wrong now."""
        self._leading = True
        try:
            await self._look_at_all()
            await self._looks.run()
        finally:
            self._leading = False
            self._looks.clear()

    async def _look_at_all(self) -> None:
        for number, name in enumerate(tuple(self._caches.nodes.views), 1):
            self._node_changed(None, self._caches.nodes.get(name))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._announcements.gone(old.uid)
            self._looks.discard(old.name)
        if new is None or not self._leading:
            return
        if not self._caches.ledger.inventory.alarms(new.name):
            self._looks.discard(new.name)
            self._announcements.about_node(new, ())
        elif new.name not in self._looks:
            self._looks.add(new.name, self._settle_s)

    async def _look(self, name: str) -> float | None:
        """See kube.workqueue.Work."""
        node = self._caches.nodes.get(name)
        if node is not None:
            self._announcements.about_node(node, self._caches.ledger.inventory.alarms(name))
        return None
