"""`cardquota cross`: who holds CPU on the GPU nodes."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cli import cluster, output, selection

if TYPE_CHECKING:
    from cli.state import State
    from core.crossquota.book import GuestBook
    from core.settings import Settings

_LARGEST = 3

HELP = "what pods without GPU use of GPU nodes"
DESCRIPTION = """\
Shows for each node with GPUs what pods without GPU may use of it (quota), what they use, and the pods that use most. Only
nodes that have an amount of a resource that crossQuota.gpuResourceNames finds, and only pods that
crossQuota.labelSelector selects.
"""
EPILOG = """\
examples:
  cardquota cross --config cardquota.yaml
  cardquota cross --config cardquota.yaml --state state.json -o json    every such pod, not only the largest
"""
_HEADER = ("NODE", "RESOURCE", "QUOTA", "USED", "LARGEST PODS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "wide", "json", "yaml", "name")
    selection.add_labelled(parser, "nodes")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the nodes."""
    from cli import books
    from cli.kinds import NODE, POD
    from core.crossquota.guest import enabled

    settings, state = cluster.read(options, needs=(NODE, POD))
    cluster.demand_pods(state)
    if not enabled(settings):
        print(
            "warning: CrossQuota is off: crossQuota.gpuResourceNames names no GPU resource", file=sys.stderr
        )
    report = summary(state, books.guests(state, settings), settings)
    chosen = selection.of_nodes(options, state, report)
    chosen.tell()
    if options.output in {"json", "yaml"}:
        output.print_document(options.output, {"nodes": chosen.shown})
    elif options.output == "name":
        output.print_names(chosen.shown, "node")
    else:
        print(
            output.table(_HEADER, list(_rows(chosen.shown, None if options.output == "wide" else _LARGEST)))
        )
    return 0


def summary(state: "State", guests: "GuestBook", settings: "Settings") -> dict[str, dict[str, Any]]:
    """Every node with GPUs, sorted; each limited resource with its quota, what is used, and every pod that uses any."""
    keys = {pod.uid: pod.key for pod in state.pods}
    report = {}
    for name in sorted(guests.nodes()):
        report[name] = {
            resource: _resource(resource, name, guests, keys)
            for resource in settings.cross_quota.quota_resources
        }
    return report


def _resource(resource: str, node: str, guests: "GuestBook", keys: Mapping[str, str]) -> dict[str, Any]:
    from core.crossquota.filter import readable, readable_limit

    quota, used = guests.quota(node), guests.used(node).get(resource, 0)
    assert quota is not None, "the book names only nodes that have limits"
    users = {
        keys[uid]: amounts[resource] for uid, amounts in guests.guests(node).items() if resource in amounts
    }
    return {
        "quota": readable_limit(resource, quota[resource]),
        "used": readable(resource, used),
        "pods": {
            key: readable(resource, milli)
            for key, milli in sorted(users.items(), key=lambda entry: (-entry[1], entry[0]))
        },
    }


def _rows(report: Mapping[str, Mapping[str, Any]], most: int | None) -> Iterator[tuple[str, ...]]:
    for node, resources in report.items():
        for resource, found in resources.items():
            pods = [f"{key} {amount}" for key, amount in found["pods"].items()]
            more = [f"and {len(pods) - most} more"] if most is not None and len(pods) > most else []
            largest = ", ".join([*pods[:most], *more])
            yield (node, resource, found["quota"], found["used"], largest)
