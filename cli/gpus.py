"""`cardquota gpus`: the cards of each node, how full they are, and who is on them."""

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from cli import cards, cluster, output, selection, watching

if TYPE_CHECKING:
    from core.queues.ledger import Ledger

HELP = "how full the cards of each node are, and with whom"
DESCRIPTION = """\
Shows for each node with cards how much of them is in use, and by which pods: whole cards and their shares by name, mGPU cards one by
one, in hundredths of a card and MiB. Counted are pods that have the node, also those that ask for the resource of a card and do not
name the card, which no queue is charged with; `cardquota queues` shows what is promised besides.
Accelerators that give no card, and labels that cannot be true, are told as warnings, as by `cardquota cards`.
"""
EPILOG = """\
examples:
  cardquota gpus
  cardquota gpus --watch                      again every five seconds
  cardquota gpus -n ml -o wide                nodes with pods of that namespace, every pod by name
  cardquota gpus -l pool=train --limit 20
  cardquota gpus --state state.json -o json
"""
_HEADER: Final = ("NODE", "CARD", "FULL", "IN USE", "PODS")
_WIDTH: Final = 10
_PODS: Final = 4
"""Pods that are named in a row; `wide` and JSON have them all."""
_UNNAMED: Final = ", card not named"
"""Behind the cards of a pod that no queue is charged with."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "wide", "json", "yaml", "name")
    parser.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", help="only nodes with pods of this namespace"
    )
    selection.add_labelled(parser, "nodes")
    watching.add_argument(parser)
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the nodes."""
    return watching.run(options, _print)


def _print(options: argparse.Namespace) -> None:
    from cli import books
    from cli.kinds import NODE, POD
    from core.steps import finish

    settings, state = cluster.read(options, needs=(NODE, POD))
    cluster.demand_pods(state)
    ledger = books.of(state, settings)
    finish(ledger.settle())
    found = {
        name: node
        for name, node in summary(ledger).items()
        if options.namespace is None or options.namespace in _namespaces(node)
    }
    chosen = selection.of_nodes(options, state, found)
    chosen.tell()
    cards.warn(ledger.inventory, _asked_about(options, ledger))
    if options.output in {"json", "yaml"}:
        output.print_document(options.output, {"nodes": chosen.shown})
    elif options.output == "name":
        output.print_names(chosen.shown, "node")
    else:
        print(output.table(_HEADER, list(_rows(chosen.shown, None if options.output == "wide" else _PODS))))


def _asked_about(options: argparse.Namespace, ledger: "Ledger") -> list[str]:
    """The nodes that the options ask for, in the table or not: one that shows no card may have accelerators."""
    matches = selection.matcher(options)
    return [
        name
        for name, node in sorted(ledger.nodes.items())
        if matches(node.labels)
        and (
            options.namespace is None
            or any(pod.namespace == options.namespace for pod in ledger.pods_on(name))
        )
    ]


def _namespaces(node: Mapping[str, Any]) -> set[str]:
    """Of the pods that use anything of a node."""
    keys = [key for entry in (*node["cards"].values(), *node["mgpu"]) for key in entry["pods"]]
    return {key.partition("/")[0] for key in keys}


def summary(ledger: "Ledger") -> dict[str, dict[str, Any]]:
    """Node -> its cards by name in whole cards, and its mGPU cards in hundredths and MiB; nodes without either left out."""
    from core.display.fill import fill_of

    found = {name: fill_of(ledger, name) for name in sorted(ledger.nodes)}
    return {name: node for name, node in found.items() if node["cards"] or node["mgpu"]}


def _rows(found: Mapping[str, Mapping[str, Any]], most: int | None) -> Iterator[tuple[str, ...]]:
    for name, node in found.items():
        for card, entry in node["cards"].items():
            pods = [
                f"{key} ({count}{_UNNAMED if key in entry['unnamed'] else ''})"
                for key, count in entry["pods"].items()
            ]
            yield (
                name,
                card,
                bar(entry["used"], entry["count"]),
                f"{entry['used']}/{entry['count']}",
                _named(pods, most),
            )
        for entry in node["mgpu"]:
            shares = f"{entry['coreUsed']}/{entry['core']}, {entry['memoryUsed']}/{entry['memory']} MiB"
            full = bar(entry["coreUsed"], entry["core"])
            yield name, f"mGPU {entry['index']}", full, shares, _named(entry["pods"], most)


def bar(used: int, whole: int) -> str:
    """So many tenths; anything at all is seen, and only what is full looks full."""
    if used > whole:
        return "[" + "!" * _WIDTH + "]"
    filled = used * _WIDTH // whole if whole else 0
    shown = max(filled, 1) if used else 0
    return "[" + "#" * shown + "." * (_WIDTH - shown) + "]"


def _named(pods: list[str], most: int | None) -> str:
    more = f" and {len(pods) - most} more" if most is not None and len(pods) > most else ""
    return ", ".join(pods[:most]) + more
