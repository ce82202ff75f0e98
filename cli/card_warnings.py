"""What costs somebody cards, and is therefore told by every command that shows the cards of nodes."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cli import output

if TYPE_CHECKING:
    from core.cards.inventory import Inventory


def tell(inventory: "Inventory", nodes: Iterable[str]) -> None:
    """On standard error, a line for each remark: first those about these nodes, then where nodes contradict one another."""
    for name in nodes:
        for note in inventory.notes(name):
            print(f"warning: node {name}: {output.printable(note)}", file=sys.stderr)
    for note in inventory.conflict_notes():
        print(f"warning: {output.printable(note)}", file=sys.stderr)
