"""What `explain` says, as JSON: the explanation of one pod, with the others of its workload counted."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cli import output

if TYPE_CHECKING:
    from cli.state import State
    from cli.targets import Target
    from core.answers.explain import Explanation
    from core.answers.holders import Holder
    from core.answers.line import Place, Waiting
    from core.answers.remedy import Remedy
    from core.objects import Pod
    from core.plan.place import Place as NodePlace
    from core.queues.ledger import Ledger
    from core.settings import Settings

_FIRST: Final = ("hold", "lift", "reserved", "allocated", "ignored")


def explained(
    state: "State",
    settings: "Settings",
    target: "Target",
    pods: Sequence["Pod"],
    now: int | None = None,
) -> dict[str, Any]:
    """The report on the pods of a target: of each how it stands, of the first one that waits everything; `now` as for `of_pod`."""
    from cli import books
    from core.answers.explain import standings

    refused = _refused(state, target)
    if not pods:
        return {"object": target.display, "pods": {}, **refused}
    ledger = books.of(state, settings)
    standing = standings(ledger, [pod.uid for pod in pods])
    first = min(pods, key=lambda pod: _FIRST.index(standing[pod.uid].decision))
    waiting = [pod for pod in pods if standing[pod.uid].decision == "hold"]
    if waiting:
        first = min(waiting, key=lambda pod: standing[pod.uid].rank)
    return {
        "object": target.display,
        "pods": dict(Counter(standing[pod.uid].decision for pod in pods)),
        **refused,
        **of_pod(state, settings, ledger, first, now),
    }


def of_pod(
    state: "State", settings: "Settings", ledger: "Ledger", pod: "Pod", now: int | None = None
) -> dict[str, Any]:
    """Everything on one pod; `now` in microseconds since 1970, the last moment of the state where it is not given."""
    from cli import history
    from core.answers.explain import explain

    found = explain(ledger, pod.uid)
    if found is None:
        return {"pod": pod.key, "decision": "ignored"}
    return {
        "pod": pod.key,
        **_one(found, ledger),
        **history.start(state, ledger, found, now),
        **_nodes(state, settings, ledger, found),
        **_scheduler(state, found),
    }


def _refused(state: "State", target: "Target") -> dict[str, Any]:
    """What admission says of new pods of the target."""
    prefix = f"{target.namespace}/{target.name}"
    found = {
        key: output.why(refusal)
        for key, refusal in state.refused.items()
        if key == prefix or (target.kind != "Pod" and key.rpartition("-")[0] == prefix)
    }
    return {"refused": found} if found else {}


def _one(found: "Explanation", ledger: "Ledger") -> dict[str, Any]:
    entry, hold = found.entry, found.hold
    asked = entry.demand.card
    report: dict[str, Any] = {
        "decision": found.decision,
        "queue": entry.queue,
        "queueFrom": found.source.value,
        "counted": output.amounts(found.counted),
    }
    if asked is not None and asked.resource:
        report["resource"] = asked.resource
    if entry.pod.bound:
        report["node"] = entry.pod.node_name
    if hold is not None:
        report |= {**output.why(hold.why), "meaning": hold.why.meaning, "remedy": hold.why.remedy}
    if found.place is not None:
        report["position"] = _position(found.place)
    if found.hold is not None:
        report["together"] = found.together
        report["quota"] = {
            figure.key: {
                **output.amounts({"asked": figure.asked, "used": figure.used}, zero=True),
                **({} if figure.limit is None else output.amounts({"limit": figure.limit}, zero=True)),
                **output.amounts({"missing": figure.missing}, zero=True),
                **({} if figure.queue == found.entry.queue else {"queue": figure.queue}),
            }
            for figure in found.figures
        }
        report["heldBy"] = [_holder(one, ledger) for one in found.holders]
        report["help"] = [_remedy(one) for one in found.remedies]
        report["allTried"] = found.all_tried
    if found.beyond_nodes:
        report["beyondNodes"] = found.beyond_nodes
    if found.stock:
        report["stock"] = {
            one.card: {
                **output.amounts(
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
                **output.amounts({"onClosedNodes": one.closed}, zero=True),
            }
            for one in found.stock
        }
    return report


def _position(place: "Place") -> dict[str, Any]:
    return {
        "number": place.number,
        "of": place.length,
        "fifo": place.fifo,
        "before": [_waiting(one) for one in place.before],
    }


def _waiting(one: "Waiting") -> dict[str, Any]:
    return {"object": one.object, "pods": one.pods, "asks": output.amounts(one.asks), "reason": one.reason}


def _holder(one: "Holder", ledger: "Ledger") -> dict[str, Any]:
    return {
        "pod": one.pod.key,
        "queue": ledger.attribution(one.pod).queue,
        "amounts": output.amounts(one.amounts),
        "node": one.pod.node_name,
    }


def _remedy(one: "Remedy") -> dict[str, Any]:
    steps = []
    for step in one.steps:
        shown: dict[str, Any] = {"action": step.action, "text": step.text}
        if step.object:
            shown["object"] = step.object
        if step.key:
            shown["key"] = step.key
        if step.action == "raise":
            shown |= output.amounts({"by": step.amount, "to": step.total}, zero=True)
        if step.pods:
            shown["pods"] = list(step.pods)
        if step.command:
            shown["command"] = step.command
        steps.append(shown)
    return {"steps": steps}


def _nodes(state: "State", settings: "Settings", ledger: "Ledger", found: "Explanation") -> dict[str, Any]:
    """Where mGPU shares fit."""
    from cli import books
    from core.plan.place import place

    if found.entry.demand.mgpu is None or found.entry.pod.bound:
        return {}
    guests = books.guests(state, settings)
    places = place(ledger, guests, found.entry.pod)
    return {"nodes": {name: _fit(one) for name, one in places.items() if _matters(name, ledger)}}


def _scheduler(state: "State", found: "Explanation") -> dict[str, Any]:
    """What its scheduler last said of a pod that has its quota and no node: it stands on the pod, longer than events last."""
    from cli.state import POD
    from core.objects import raw as read

    if found.decision != "reserved":
        return {}
    raw = state.raw.get(POD, {}).get(found.entry.pod.key, {})
    for condition in read.sequence(raw, "status", "conditions"):
        fields = read.mapping({"": condition}, "")
        if fields.get("type") == "PodScheduled" and fields.get("status") == "False":
            told = {key: read.text(fields, key) for key in ("reason", "message")}
            return {"scheduler": {**told, "since": read.text(fields, "lastTransitionTime")}}
    return {}


def _matters(node: str, ledger: "Ledger") -> bool:
    from core import names

    return any(ledger.nodes[node].allocatable.get(resource) for resource in names.MGPU_RESOURCES)


def _fit(one: "NodePlace") -> dict[str, Any]:
    return {
        "fits": not one.unfits,
        "reasons": [{"code": unfit.code, "message": unfit.message} for unfit in one.unfits],
    }
