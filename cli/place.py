"""`cardquota place`: where one pod fits, and where not and why."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli import cluster, output, selection, targets
from cli.errors import CommandError

if TYPE_CHECKING:
    from core.objects import Pod
    from core.plan.place import Place
    from core.queues.ledger import Ledger

HELP = "per node: fits or why not, cards, scores"
DESCRIPTION = """\
Judges a pod on every node as if it were not bound yet: whether it fits as far as cardquota's own rules go (the cards that it
names and asks for, mGPU shares, CrossQuota), on which GPU cards it would run, and the scores. Of a pod at the gate it says what
it waits for. CPU, taints, affinity, volumes and the like are the scheduler's business.
"""
EPILOG = """\
examples:
  cardquota place ml/notebook
  cardquota place notebook --state state.json -o json    a pod of the namespace default
  cardquota place ml/notebook -o name -l pool=train      the nodes with that label that fit
"""
_HEADER = ("NODE", "FITS", "CARD", "GPUS", "MGPU", "CROSSQUOTA", "CARDS", "REASON", "MESSAGE")
"""The three in the middle are scores."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "pod",
        metavar="POD",
        help="namespace/name of a pod of the state or the cluster; without a namespace that of the kubeconfig's context, or default",
    )
    output.add_argument(parser, "text", "json", "yaml", "name")
    selection.add_labelled(parser, "nodes")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the nodes. A pod that is not there is wrong input."""
    from cli import books
    from cli.kinds import NODE, POD, QUEUE
    from core.answers.beyond import Reach
    from core.plan.place import place
    from core.steps import finish

    settings, state = cluster.read(options, needs=(NODE, QUEUE, POD))
    cluster.demand_all(state)
    key = options.pod if "/" in options.pod else f"{cluster.default_namespace(options)}/{options.pod}"
    if key in state.refused:
        return _refused(options, key, output.why(state.refused[key]))
    pod = next((pod for pod in state.pods if pod.key == key), None)
    if pod is None:
        raise CommandError(
            f"there is no pod {output.printable(key)}{targets.other_pods(state, key)}",
            "name it as namespace/name; `cardquota plan -o name` lists the pods",
        )
    cluster.demand(state, settings, [pod])
    ledger = books.of(state, settings)
    places = place(ledger, books.guests(state, settings), pod)
    chosen = selection.of_nodes(options, state, {name: _node(found) for name, found in places.items()})
    chosen.tell()
    nodes = chosen.shown
    entry = ledger.entry(pod.uid)
    beyond = finish(Reach(ledger).beyond(entry)) if entry is not None else None
    gate = _gate(ledger, pod)
    if options.output in {"json", "yaml"}:
        never = {} if beyond is None else {"beyondNodes": beyond.why}
        report = {"pod": key, **never, **({} if gate is None else {"gate": gate}), "nodes": nodes}
        output.print_document(options.output, report)
    elif options.output == "name":
        output.print_names((name for name, node in nodes.items() if node["fits"]), "node")
    else:
        if beyond is not None:
            print(output.printable(f"Pod {key} can never run: {beyond.why}"))
        if gate is not None:
            print(f"Pod {output.printable(key)} {_told(gate)}")
        if beyond is not None or gate is not None:
            print()
        print(output.table(_HEADER, [_row(name, node) for name, node in nodes.items()]))
    return 0


def _refused(options: argparse.Namespace, key: str, why: Mapping[str, str]) -> int:
    """Says what admission says of a new pod: there will be none to place."""
    from cli import explain_text

    if options.output in {"json", "yaml"}:
        output.print_document(options.output, {"pod": key, "refused": why, "nodes": {}})
    elif options.output == "text":
        for line in explain_text.refusals({key: why}):
            print(output.printable(line))
    return 0


def _gate(ledger: "Ledger", pod: "Pod") -> dict[str, str] | None:
    """What the quota pass would do with a pod at the gate: no node gets it before it is lifted. None at no gate."""
    from core.plan.offline import plan

    if not pod.gated:
        return None
    found = plan(ledger, (pod,)).pods[pod.key]
    return {"queue": found.queue, "decision": found.decision, **output.why(found.why)}


def _told(gate: Mapping[str, str]) -> str:
    if gate["decision"] == "lift":
        return f"waits at the gate of queue {gate['queue']} and would be lifted now"
    return (
        f"waits at the gate of queue {gate['queue']}: {gate['reason']}: {output.printable(gate['message'])}"
    )


def _node(place: "Place") -> dict[str, Any]:
    shown: dict[str, Any] = {
        "fits": not place.unfits,
        "reasons": [{"code": why.code, "message": why.message} for why in place.unfits],
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
