"""`cardquota queues`: what each queue may use, uses, holds and waits for."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cli import cluster, output, selection, watching

if TYPE_CHECKING:
    from core.display.attributes import Attributes
    from core.objects import Pod, Queue
    from core.queues.ledger import Ledger

HELP = "quota and usage of each queue"
DESCRIPTION = """\
Shows for each queue and card (or mGPU resource) the quota, what bound pods use (allocated), what pods hold that may be
bound any moment (reserved), and what gated pods wait for (waiting).

With -o wide it shows CPU and memory too, and everything by which queues are limited and compared: what a queue may use
(capability), is sure of (guarantee), should have (deserved) and could have in this cluster (real capability); what its pods
use (allocated) and ask for (request); what is promised to PodGroups (inqueue) and used beyond their minimum (elastic).
"""
EPILOG = """\
examples:
  cardquota queues
  cardquota queues -o wide
  cardquota queues --watch                    again every five seconds
  cardquota queues --queue research -o yaml
  cardquota queues -l team=nlp --limit 20     queues with that label
  cardquota queues --state state.json -o json
"""
_ATTRIBUTES = (
    "capability",
    "guarantee",
    "deserved",
    "realCapability",
    "allocated",
    "request",
    "inqueue",
    "elastic",
)
_WIDE = ("QUEUE", "KEY", *(re.sub("(?=[A-Z])", " ", name).upper() for name in _ATTRIBUTES))
_HEADER = ("QUEUE", "STATE", "KEY", "QUOTA", "ALLOCATED", "RESERVED", "WAITING")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "wide", "json", "yaml", "name")
    selection.add_queue(parser)
    selection.add_labelled(parser, "queues")
    watching.add_argument(parser)
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the queues."""
    return watching.run(options, _print)


def _print(options: argparse.Namespace) -> None:
    from cli import books
    from cli.kinds import QUEUE
    from cli.sight import Sight
    from core.display.twofold import contradiction
    from core.queues.access import access_of
    from core.queues.narrowed import narrowed

    settings, state = cluster.read(options, needs=(QUEUE,))
    ledger = books.of(state, settings)
    for name, limits in sorted(ledger.limits.items()):
        if limits.malformed:
            print(f"warning: queue {name} has no cards: its quota {limits.malformed}", file=sys.stderr)
        if ledger.devices.malformed(name):
            text = output.printable(ledger.devices.malformed(name))
            print(f"warning: queue {name}: its device quota cannot be read: {text}", file=sys.stderr)
    for name, queue in sorted(ledger.queues.items()):
        for found in narrowed(queue, ledger.inventory.resources_of) if settings.features.cards else ():
            text = output.printable(contradiction(found))
            print(f"warning: queue {name}: spec.capability {text}", file=sys.stderr)
        for annotation, problem in access_of(queue).problems:
            text = output.printable(problem)
            print(f"warning: queue {name}: {annotation} admits nobody: {text}", file=sys.stderr)
    report = summary(ledger, state.pods)
    if Sight(state, settings).uncounted():
        report = {name: _as_written(entry, ledger.queues.get(name)) for name, entry in report.items()}
    chosen = selection.of_labelled_queues(options, state, report)
    chosen.tell()
    report = chosen.shown
    if options.output in {"json", "yaml"}:
        output.print_document(options.output, report)
    elif options.output == "name":
        output.print_names(report, "queue")
    elif options.output == "wide":
        print(output.table(_WIDE, list(_wide_rows(report))))
    else:
        print(output.table(_HEADER, list(_rows(report))))


def summary(ledger: "Ledger", pods: "Iterable[Pod]") -> dict[str, dict[str, Any]]:
    """Every queue that exists or is charged, sorted; amounts as in Queue status, what is zero left out.

    `attributes` are those of queues that exist: CPU in cores, memory in bytes, cards as they are.
    """
    from core.display.attributes import overview

    found = overview(ledger, pods)
    return {
        name: {
            **_entry(ledger, name),
            "attributes": _attributes(found[name]) if name in found else {},
        }
        for name in sorted(ledger.queues.keys() | ledger.accounts.keys())
    }


def _as_written(entry: dict[str, Any], queue: "Queue | None") -> dict[str, Any]:
    """What the queue's status says is allocated: of the pods that use it most may not be known here."""
    from core.quantity import QuantityError, milli

    allocated = {}
    for key, text in sorted(queue.allocated.items() if queue is not None else ()):
        try:
            allocated[key] = milli(text)
        except QuantityError:
            continue
    keys = {key for part in ("quota", "allocated", "reserved", "waiting") for key in entry[part]}
    limits = {key: milli(text) for key, text in entry["quota"].items()}
    shares = [allocated.get(key, 0) / limit for key, limit in limits.items() if limit]
    shown = output.amounts({key: amount for key, amount in allocated.items() if key in keys})
    return {**entry, "allocated": shown, "share": max(shares, default=entry["share"])}


def _attributes(attributes: "Attributes") -> dict[str, dict[str, str]]:
    """A limit of zero is told apart from none."""
    limits = (
        attributes.capability,
        attributes.guarantee,
        attributes.deserved,
        attributes.real_capability,
    )
    sums = (attributes.allocated, attributes.request, attributes.inqueue, attributes.elastic)
    shown = [*(output.amounts(part, zero=True) for part in limits), *(output.amounts(part) for part in sums)]
    return dict(zip(_ATTRIBUTES, shown, strict=True))


def _entry(ledger: "Ledger", name: str) -> dict[str, Any]:
    from core.display.figures import figures_of

    queue = ledger.queues.get(name)
    state = (queue.state or "Open") if queue else "NotFound"
    access = _access(queue, ledger.settings.queue.access) if queue else {}
    return {"state": state, "access": access, **output.figures(figures_of(ledger, name))}


def _access(queue: "Queue", otherwise: str) -> dict[str, Any]:
    """Who may use a queue: its annotations as they stand, and whether it is open to all for want of them."""
    from core.queues.access import access_of

    shown: dict[str, Any] = {"open": not access_of(queue).stated and otherwise == "open"}
    if queue.namespaces is not None:
        shown["namespaces"] = queue.namespaces
    if queue.namespace_selector is not None:
        shown["namespaceSelector"] = queue.namespace_selector
    return shown


def _rows(report: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for name, entry in report.items():
        for key, cells in output.by_key(entry):
            yield (name, entry["state"], key, *cells)


def _wide_rows(report: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The cards of other queues, of which this one could have nothing, are left out."""
    for name, entry in report.items():
        found = entry["attributes"]
        keys = {key for part, amounts in found.items() if part != "realCapability" for key in amounts}
        for key in sorted(keys):
            yield (name, key, *(output.as_written(key, found[part].get(key, "0")) for part in _ATTRIBUTES))
