"""What is odd about the cards of the nodes, for whoever looks after them: in the log, and as numbers."""

import logging

from prometheus_client import CollectorRegistry, Gauge

from core.cards.inventory import Inventory
from core.objects import Node

_LOG = logging.getLogger(__name__)


class DiscoveryLog:
    """Follows the nodes behind the inventory.

    Each remark is logged once, with the first node that it is about, since whole fleets are labelled alike;
    `cardquota cards` lists them all.
    """

    def __init__(self, inventory: Inventory, registry: CollectorRegistry) -> None:
        self._inventory = inventory
        self._said: set[str] = set()
        self._odd: set[str] = set()
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
            self._odd.discard(old.name if old is not None else "")
            return
        notes = self._inventory.notes(new.name)
        (self._odd.add if notes else self._odd.discard)(new.name)
        for note in (*notes, *self._inventory.conflict_notes()):
            if note not in self._said:
                self._said.add(note)
                _LOG.warning("cards that do not add up", extra={"node": new.name, "remark": note})
