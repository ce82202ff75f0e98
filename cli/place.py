"""`cardquota place`: where one pod fits, and where not and why."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli import cluster, config, output
from cli.errors import CommandError

if TYPE_CHECKING:
    from core.plan.place import Place

_DESCRIPTION = """\
Judges a pod on every node as if it were not bound yet: whether it fits as far as cardquota's own rules go, on which GPU
cards it would run, and the scores. CPU, taints, volumes and the like are the scheduler's business.
"""
_EPILOG = """\
examples:
  cardquota place ml/notebook
  cardquota place notebook --state state.json -o json    a pod of the namespace default
"""
_HEADER = ("NODE", "FITS", "CARD", "GPUS", "MGPU", "CROSSQUOTA", "CARDS", "REASON", "MESSAGE")
"""The three in the middle are scores."""


def add_parser(subcommands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = subcommands.add_parser(
        "place", help="per node: fits or why not, cards, scores", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("pod", metavar="POD", help="namespace/name of a pod of the state or the cluster")
    output.add_argument(parser, "text", "json")
    cluster.add_arguments(parser)
    config.add_argument(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the nodes. A pod that is not there is wrong input."""
    from cli import books
    from core.plan.place import place

    settings = config.load(options.config)
    state = cluster.load(options, settings)
    key = options.pod if "/" in options.pod else f"default/{options.pod}"
    pod = next((pod for pod in state.pods if pod.key == key), None)
    if pod is None:
        raise CommandError(f"there is no pod {output.printable(key)}")
    places = place(books.of(state, settings), books.guests(state, settings), pod)
    nodes = {name: _node(found) for name, found in places.items()}
    if options.output == "json":
        output.print_json({"pod": key, "nodes": nodes})
    else:
        print(output.table(_HEADER, [_row(name, node) for name, node in nodes.items()]))
    return 0


def _node(place: "Place") -> dict[str, Any]:
    shown: dict[str, Any] = {
        "fits": not place.unfits,
        "reasons": [{"code": unfit.code, "message": unfit.message} for unfit in place.unfits],
        "unresolvable": any(unfit.unresolvable for unfit in place.unfits),
    }
    if place.share is not None:
        shown["mgpu"] = {
            "annotations": dict(place.share.annotations),
            "score": place.share.score,
            "combination": place.share.combination,
            "optimal": place.share.optimal,
        }
    if place.guest_score is not None:
        shown["crossquota"] = {"score": place.guest_score}
    if place.card is not None:
        shown["cards"] = {"card": place.card.card, "score": place.card.score}
    return shown


def _row(name: str, node: Mapping[str, Any]) -> tuple[str, ...]:
    share, card = node.get("mgpu"), node.get("cards")
    return (
        name,
        "yes" if node["fits"] else "no",
        card["card"] if card else "",
        _gpus(share["annotations"]) if share else "",
        *(f"{node[part]['score']:.1f}" if part in node else "" for part in ("mgpu", "crossquota", "cards")),
        ", ".join(reason["code"] for reason in node["reasons"]),
        ", ".join(reason["message"] for reason in node["reasons"]),
    )


def _gpus(annotations: Mapping[str, str]) -> str:
    """`container: cards`, as far as the annotations name cards."""
    from core.names import GPU_INDEX_PREFIX

    return "; ".join(
        f"{key.removeprefix(GPU_INDEX_PREFIX)}: {value}"
        for key, value in annotations.items()
        if key.startswith(GPU_INDEX_PREFIX)
    )
