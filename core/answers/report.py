"""An explanation as JSON: what `explain` prints, and what the leader answers with as far as its asker may know it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from core.answers.explain import Explanation
from core.answers.holders import Holder
from core.answers.line import Place, Waiting
from core.answers.remedy import Remedy
from core.answers.stock import Stock
from core.quantity import render_amounts
from core.queues.amounts import add
from core.queues.ledger import Ledger
from core.queues.narrowed import narrowed
from core.steps import Pace, Steps, each, finish

_MOST_REASONS: Final = 10
_IN_A_STEP: Final = 500
"""Pods that are told, or added up, in about half a millisecond."""

Sees = Callable[[str], bool]
"""Whether pods of a namespace may be named."""


def everything(_namespace: str) -> bool:
    """For whoever may see all pods."""
    return True


def of_explanation(found: Explanation, ledger: Ledger) -> dict[str, Any]:
    """All of it."""
    report = {**of_pod(found), **finish(of_queue(found, ledger)), **of_nodes(found)}
    if found.hold is not None:
        report["help"] = [_remedy(one) for one in found.remedies]
        report["allTried"] = found.all_tried
    return report


def of_pod(found: Explanation) -> dict[str, Any]:
    """What is the pod's own: how it stands, which queue it is charged to with what, and why it waits."""
    entry, hold = found.entry, found.hold
    asked = entry.demand.card
    report: dict[str, Any] = {
        "decision": found.decision,
        "queue": entry.queue,
        "queueFrom": found.source.value,
        "counted": render_amounts(found.counted),
    }
    if asked is not None and asked.resource:
        report["resource"] = asked.resource
    if entry.pod.bound:
        report["node"] = entry.pod.node_name
    if hold is not None:
        why = hold.why
        report |= {
            "reason": why.code,
            "message": why.message,
            "meaning": why.meaning,
            "remedy": found.way_out,
        }
    elif entry.pod.gates and found.decision == "reserved":
        report["gates"] = list(entry.pod.gates)
    if found.besides:
        report["besides"] = found.besides
    return report


def of_queue(
    found: Explanation, ledger: Ledger, sees: Sees = everything, most: int | None = None
) -> Steps[dict[str, Any]]:
    """What its queue has for it: place in line, quota, and who holds it; pods that may not be named are added up.

    Of the others the `most` first are named.
    """
    report: dict[str, Any] = {}
    if found.place is not None:
        report["position"] = _position(found.place, sees)
    report |= _capability(found, ledger)
    if found.hold is None:
        return report
    report["together"] = found.together
    report["quota"] = {
        figure.key: {
            **render_amounts({"asked": figure.asked, "used": figure.used}, zero=True),
            **({} if figure.limit is None else render_amounts({"limit": figure.limit}, zero=True)),
            **render_amounts({"missing": figure.missing}, zero=True),
            **({} if figure.queue == found.entry.queue else {"queue": figure.queue}),
        }
        for figure in found.figures
    }
    return {**report, **(yield from _held_by(found.holders, ledger, sees, most))}


def _held_by(
    holders: Sequence[Holder], ledger: Ledger, sees: Sees, most: int | None
) -> Steps[dict[str, Any]]:
    named: list[dict[str, Any]] = []
    others: dict[str, int] = {}
    pace = Pace(_IN_A_STEP)
    for one in holders:
        if pace.due():
            yield
        if sees(one.pod.namespace) and (most is None or len(named) < most):
            named.append(_holder(one, ledger))
        else:
            add(others, one.amounts, 1)
    if len(named) == len(holders):
        return {"heldBy": named}
    told = {"pods": len(holders) - len(named), "amounts": render_amounts(others)}
    return {"heldBy": named, "heldByOthers": told}


def _capability(found: Explanation, ledger: Ledger) -> dict[str, Any]:
    """Of a pod that is let in and has no node: what Volcano's own quota keeps from it, which is below the card quota."""
    entry = found.entry
    queue, asked = ledger.queues.get(entry.queue), entry.demand.card
    if found.decision != "reserved" or queue is None or asked is None:
        return {}
    sums = ledger.sums(entry.queue)
    kept = {}
    for one in narrowed(queue, ledger.inventory.resources_of):
        used = sum(sums.used(card) for card in ledger.inventory.cards_of(one.resource))
        if one.resource == asked.resource and used > one.milli:
            kept[one.resource] = render_amounts({"limit": one.milli, "used": used}, zero=True)
    return {"capability": kept} if kept else {}


def of_nodes(found: Explanation) -> dict[str, Any]:
    """What nodes have of the cards that would do."""
    report: dict[str, Any] = {}
    if found.beyond_nodes is not None:
        report["beyondNodes"] = found.beyond_nodes.why
        # More quota, which the reason may ask for, would let the pod in for nothing.
        waits = found.hold is not None
        report["remedy"] = found.beyond_nodes.remedy_before if waits else found.beyond_nodes.remedy
    if found.ill_labelled:
        report["illLabelled"] = [
            {"message": one.message, "nodes": len(one.nodes), "node": one.nodes[0]}
            for one in found.ill_labelled[:_MOST_REASONS]
        ]
    if found.stock:
        report["stock"] = {one.card: _stock(one) for one in found.stock}
    return report


def queues(found: Explanation) -> set[str]:
    """The queues of whose quota something would be told: the pod's own, and those above it whose limit is short."""
    return {found.entry.queue, *(figure.queue for figure in found.figures)}


def namespaces(found: Explanation) -> Steps[set[str]]:
    """The namespaces of all that would be named."""
    before = found.place.before if found.place is not None else ()
    keys = [one.object.partition(" ")[2] for one in before]
    named = {key.partition("/")[0] for key in keys}
    yield from each(found.holders, lambda one: named.add(one.pod.namespace), _IN_A_STEP)
    return named


def _position(place: Place, sees: Sees) -> dict[str, Any]:
    return {
        "number": place.number,
        "of": place.length,
        "fifo": place.fifo,
        "before": [_waiting(one, sees) for one in place.before],
    }


def _waiting(one: Waiting, sees: Sees) -> dict[str, Any]:
    shown = sees(one.object.partition(" ")[2].partition("/")[0])
    return {
        "object": one.object if shown else "",
        "pods": one.pods,
        "asks": render_amounts(one.asks),
        "reason": one.reason,
    }


def _holder(one: Holder, ledger: Ledger) -> dict[str, Any]:
    return {
        "pod": one.pod.key,
        "queue": ledger.attribution(one.pod).queue,
        "amounts": render_amounts(one.amounts),
        "node": one.pod.node_name,
    }


def _stock(one: Stock) -> dict[str, Any]:
    return {
        **render_amounts(
            {
                "total": one.total,
                "free": one.free,
                "largestNode": one.largest,
                "mostOnOneNode": one.most_free,
                "reserved": one.reserved,
            },
            zero=True,
        ),
        "nodes": one.nodes,
        "bestNode": one.best_node,
        **render_amounts({"onClosedNodes": one.closed}, zero=True),
    }


def _remedy(one: Remedy) -> dict[str, Any]:
    steps = []
    for step in one.steps:
        shown: dict[str, Any] = {"action": step.action, "text": step.text}
        if step.object:
            shown["object"] = step.object
        if step.key:
            shown["key"] = step.key
        if step.action == "raise":
            shown |= render_amounts({"by": step.amount, "to": step.total}, zero=True)
        if step.pods:
            shown["pods"] = list(step.pods)
        if step.command:
            shown["command"] = step.command
        steps.append(shown)
    return {"steps": steps}
