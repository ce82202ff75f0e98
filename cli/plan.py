"""`cardquota plan`: what the controller would do with these objects, and why it would not do more."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cli import cluster, output, selection

if TYPE_CHECKING:
    from cli.state import State
    from core.plan.offline import Plan, PlannedPod
    from core.refusal import Refusal
    from core.settings import Settings

HELP = "one quota pass: what would be lifted, held and why"
DESCRIPTION = """\
Runs the quota pass until it changes nothing more and shows every pod: lifted by this plan, held and why, reserved or
allocated already; and every queue as it stands afterwards. Nothing is written anywhere.
"""
EPILOG = """\
examples:
  cardquota plan
  cardquota plan -o wide                                     also priority, age, node and what pods name
  cardquota plan --state state.json -o json
  cardquota plan -n ml --queue research -l team=nlp --limit 20
  (cat state.yaml; echo ---; cat new-job.yaml) | cardquota plan --state -    what would become of it?
"""
_PODS = ("POD", "QUEUE", "DECISION", "ASSIGNED", "REASON", "MESSAGE")
_WIDE_PODS = (
    "POD",
    "QUEUE",
    "DECISION",
    "CARD NAME",
    "ASSIGNED",
    "PRIORITY",
    "CREATED",
    "NODE",
    "REASON",
    "MESSAGE",
)
_QUEUES = ("QUEUE", "KEY", "QUOTA", "ALLOCATED", "RESERVED", "WAITING")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "wide", "json", "yaml", "name")
    selection.add_pods(parser)
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the plan."""
    from cli.kinds import NODE, POD, QUEUE
    from cli.plan_partly import as_far_as_known
    from cli.sight import Sight

    settings, state = cluster.read(options, needs=(NODE, QUEUE, POD))
    if state.unled:
        print(f"warning: nobody carries this out: {output.printable(state.unled)}", file=sys.stderr)
    now = time.time_ns() // 1000 if options.state is None else None
    report = planned(state, settings, now)
    report = as_far_as_known(report, state, Sight(state, settings))
    if options.output in {"text", "wide", "name"}:
        # Pods that ask for nothing of ours are left out before anything is counted.
        asking = {key: pod for key, pod in report["pods"].items() if pod["decision"] != "ignored"}
        report = {**report, "pods": asking}
    chosen = selection.of_pods(options, state, report["pods"])
    chosen.tell()
    queues = selection.of_queues(options, report["queues"])
    report = {**report, "pods": chosen.shown, "queues": queues}
    if options.output == "name":
        output.print_names(chosen.shown, "pod")
    elif options.output == "text":
        print(_text(report))
    elif options.output == "wide":
        print(_wide(report, state))
    else:
        output.print_document(options.output, report)
    return 0


def planned(state: "State", settings: "Settings", now: int | None = None) -> dict[str, Any]:
    """The plan of a state in the shape that `-o json` promises; `now` as for core.plan.offline.plan."""
    from cli import books, cards
    from core.plan import offline

    ledger = books.of(state, settings)
    found = offline.plan(ledger, state.pods, now)
    return {
        "cards": cards.summary(ledger.inventory),
        "queues": _queues(found),
        "pods": {
            **{key: _pod(one, _raw(state, key)) for key, one in found.pods.items()},
            **{key: _refused(why) for key, why in state.refused.items()},
        },
        "events": [
            {"object": event.object, "type": event.type, "reason": event.reason, "message": event.message}
            for event in found.events
        ],
    }


def _raw(state: "State", key: str) -> Mapping[str, Any]:
    """The pod as it was given; empty fields count as left out, for they have a stand-in, too."""
    from cli.kinds import POD

    metadata = state.raw[POD][key].get("metadata") or {}
    return {"metadata": {name: value for name, value in metadata.items() if value}}


def _queues(plan: "Plan") -> dict[str, dict[str, Any]]:
    return {name: output.figures(queue) for name, queue in plan.queues.items()}


def _pod(pod: "PlannedPod", raw: Mapping[str, Any]) -> dict[str, Any]:
    from core.plan.offline import patch_as_given

    shown: dict[str, Any] = {
        "queue": pod.queue,
        "decision": pod.decision,
        **output.why(pod.why),
    }
    if pod.assigned is not None:
        shown["assigned"] = dict(pod.assigned)
    if pod.patch is not None:
        shown["patch"] = patch_as_given(pod.patch, raw)
    return shown


def _refused(why: "Refusal") -> dict[str, Any]:
    """A pod that is only about to be created, and will not be."""
    return {"queue": "", "decision": "ignored", **output.why(why)}


def _text(report: Mapping[str, Any]) -> str:
    pods = [
        (key, pod["queue"], pod["decision"], _assigned(pod), pod["reason"], pod["message"])
        for key, pod in report["pods"].items()
    ]
    return "\n\n".join([output.table(_PODS, pods), *_queues_table(report)])


def _queues_table(report: Mapping[str, Any]) -> list[str]:
    """None where nothing is known of queues."""
    rows = list(_queue_rows(report["queues"]))
    return [output.table(_QUEUES, rows)] if rows else []


def _wide(report: Mapping[str, Any], state: "State") -> str:
    """With what there is to know of the pods themselves; a pod of a file may be without age."""
    known = {pod.key: pod for pod in state.pods}
    rows = []
    for key, pod in report["pods"].items():
        view, created = known.get(key), str((_raw(state, key)["metadata"]).get("creationTimestamp", ""))
        rows.append(
            (
                key,
                pod["queue"],
                pod["decision"],
                view.card_name if view is not None else "",
                _assigned(pod),
                str(view.priority) if view is not None else "",
                created,
                view.node_name if view is not None else "",
                pod["reason"],
                pod["message"],
            )
        )
    return "\n\n".join([output.table(_WIDE_PODS, rows), *_queues_table(report)])


def _assigned(pod: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {card}" for card, count in pod.get("assigned", {}).items())


def _queue_rows(queues: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for name, queue in queues.items():
        for key, cells in output.by_key(queue):
            yield (name, key, *cells)
