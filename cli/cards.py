"""`cardquota cards`: the cards found on the nodes, under the names that quotas and pods use."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cli import cluster, output, selection

if TYPE_CHECKING:
    from core.cards.inventory import Inventory


HELP = "the cards found on the nodes"
DESCRIPTION = """\
Shows the cards that the nodes' labels and allocatable resources add up to: the name to write into a card quota or a
pod's card.name, the resource that the pod has to ask for, and how many there are.
"""
EPILOG = """\
examples:
  cardquota cards
  cardquota cards -o wide                       one row for each node
  cardquota cards -l pool=train                 of nodes with that label
  cardquota cards --state nodes.json -o json    also how many each node has
"""
_HEADER = ("CARD", "RESOURCE", "COUNT", "NODES")
_WIDE_HEADER = ("CARD", "NODE", "RESOURCE", "COUNT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "wide", "json", "yaml", "name")
    selection.add_labelled(parser, "nodes")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the cards."""
    from cli.kinds import NODE
    from core.cards.inventory import Inventory
    from core.display.twofold import twofold
    from core.dra.extended import DeviceClasses

    settings, state = cluster.read(options, needs=(NODE,))
    inventory, classes = Inventory.of(settings), DeviceClasses()
    for device_class in state.device_classes:
        classes.put(device_class)
    chosen = selection.of_nodes(options, state, {node.name: node for node in state.nodes})
    chosen.tell()
    for node in chosen.shown.values():
        inventory.put(node)
    warn(inventory, chosen.shown)
    for card, name in twofold(inventory.cards(), inventory, classes, settings.cards.equivalents):
        print(
            f"warning: card {output.printable(card)} and DeviceClass {name} may be the same devices; "
            "neither quota counts the other",
            file=sys.stderr,
        )
    if options.output in {"json", "yaml"}:
        output.print_document(options.output, summary(inventory))
    elif options.output == "name":
        output.print_names(inventory.cards())
    elif options.output == "wide":
        print(output.table(_WIDE_HEADER, list(_by_node(inventory))))
    else:
        print(output.table(_HEADER, list(_by_card(inventory))))
    return 0


def _by_card(inventory: "Inventory") -> Iterator[tuple[str, ...]]:
    for name, card in summary(inventory).items():
        yield name, card["resource"], str(card["count"]), str(len(card["nodes"]))


def _by_node(inventory: "Inventory") -> Iterator[tuple[str, ...]]:
    """Each node with the resource that it shows itself, which is where conflicts can be seen."""
    for card in inventory.cards():
        for name in inventory.nodes_with(card):
            stock = inventory.on_node(name)[card]
            yield card, name, stock.resource, str(stock.milli // 1000)


def summary(inventory: "Inventory") -> dict[str, dict[str, Any]]:
    """Card -> its resource, how many there are, and how many on which node; in whole cards."""
    totals = inventory.totals()
    return {
        card: {
            "resource": inventory.resource_of(card),
            "count": totals.get(card, 0) // 1000,
            "nodes": {
                name: inventory.on_node(name)[card].milli // 1000 for name in inventory.nodes_with(card)
            },
        }
        for card in inventory.cards()
    }


def warn(inventory: "Inventory", nodes: Iterable[str]) -> None:
    """What costs somebody cards, on standard error: a line for each remark: first those about these nodes, then where nodes contradict one another."""
    for name in nodes:
        for note in inventory.notes(name):
            print(f"warning: node {name}: {output.printable(note)}", file=sys.stderr)
    for note in inventory.conflict_notes():
        print(f"warning: {output.printable(note)}", file=sys.stderr)
